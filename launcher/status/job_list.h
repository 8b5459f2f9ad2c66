#pragma once

#include <string>
#include <vector>

#include "elastic/kv_store.h"
#include "launcher/status/job_status.h"

namespace everstep::launcher {

// All jobs of an etcd, as they were at one instant.
Result<std::vector<JobStatus>> list_jobs(elastic::KvStore& store, const JobSecret& secret);

std::string job_list_text(const std::vector<JobStatus>& jobs, std::size_t columns = 0);
storage::Json job_list_json(const std::vector<JobStatus>& jobs);

}  // namespace everstep::launcher
