#pragma once

#include <string>
#include <vector>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// One worker of a run, as a process that `everstep train` started: reads its command line, tells the supervisor where
// it can be reached, trains with the others, and tells how it ended. Events go to standard error, which is its log.
ExitCode run_worker(const std::vector<std::string>& args);

}  // namespace everstep::launcher
