#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/job/wire_options.h"

namespace everstep::launcher {

// What CUDA and NCCL read once, when they start: names and values. A worker sets those that nobody has set.
using DeviceVariables = std::vector<std::pair<std::string, std::string>>;

// For a kind of device. NCCL calls peers over the network that --bind names, as far as it needs a network.
DeviceVariables device_variables(const std::string& kind, const std::string& transport, const WireOptions& wire);

// The same for --print-config: a line for each.
std::vector<std::string> device_variable_lines(const Config& config, const std::string& kind);

}  // namespace everstep::launcher
