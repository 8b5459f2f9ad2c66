#pragma once

#include <string>
#include <vector>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// `everstep-worker replay …`: what `everstep replay` becomes. The arguments are those after that word.
ExitCode run_replay_program(const std::vector<std::string>& args);

}  // namespace everstep::launcher
