#pragma once

#include <string_view>

#include "launcher/cli/command.h"

namespace everstep::launcher {

// Writes what a command made to the file that the option names, which must be set, and logs that. A refusal is the
// option's fault.
Outcome write_output_file(const Config& config, std::string_view option, std::string_view content, Streams& streams);

}  // namespace everstep::launcher
