#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/child_process.h"

namespace everstep::launcher {

// The program `etcd` with these arguments, and with another command line before its own, such as nsenter's. It gets
// none of the options that are set for another one in our environment. kNotFound: there is no such program.
Result<ChildProcess> start_etcd(const std::vector<std::string>& args, const std::filesystem::path& log,
                                std::vector<std::string> prefix = {});

// A port of the loopback device that nobody listens at now. Not one of those that the system hands out by itself, so
// that it most likely stays free.
int unused_port();

}  // namespace everstep::launcher
