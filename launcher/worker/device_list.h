#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// `everstep-worker devices KIND`: how everstep, which is without LibTorch, learns what devices this host has. Prints
// what parse_device_list (launcher/supervise/local_devices.h) reads.
inline constexpr std::string_view kDeviceListRole = "devices";
ExitCode print_device_list(const std::vector<std::string>& args);

}  // namespace everstep::launcher
