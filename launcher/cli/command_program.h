#pragma once

#include <string>
#include <vector>

#include "launcher/cli/command.h"

namespace everstep::launcher {

// A whole process that runs one command: with its environment, standard output and terminal, and an exit code for
// whatever happens.
ExitCode run_as_program(const std::vector<Command>& commands, std::vector<std::string> args);

}  // namespace everstep::launcher
