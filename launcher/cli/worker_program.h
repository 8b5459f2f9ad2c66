#pragma once

#include <string>
#include <vector>

#include "launcher/cli/command.h"

namespace everstep::launcher {

// Becomes everstep-worker, which has LibTorch and was installed beside this program, with these arguments: signals and
// the exit code are its own from then on. Returns only if it cannot be started.
Outcome become_worker_program(std::vector<std::string> args, Streams& streams);

}  // namespace everstep::launcher
