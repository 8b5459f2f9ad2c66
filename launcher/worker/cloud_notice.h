#pragma once

#include <memory>
#include <string>

#include "launcher/http/http_client.h"
#include "launcher/worker/leave_notice.h"

namespace everstep::launcher {

// Spot notices of clouds, as their metadata servers tell them to a machine. `url`: of a server that stands in for it.
std::unique_ptr<NoticeSource> make_aws_notice(const std::string& url);
std::unique_ptr<NoticeSource> make_gcp_notice(const std::string& url);

// Clouds tell times of the wall clock. Nothing else here reads it.
double wall_clock_seconds();

}  // namespace everstep::launcher
