#pragma once

#include <string>
#include <vector>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// All of everstep-worker behind main(), which says what devices there are (trainer/torch/devices.h).
ExitCode run_worker_program(const std::vector<std::string>& args);

}  // namespace everstep::launcher
