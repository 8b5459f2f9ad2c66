#pragma once

#include "launcher/cli/command.h"

namespace everstep::launcher {

// `everstep train` with workers that may come and go: starts an etcd of its own or uses one that runs, creates the job
// there or joins it, starts workers and stays until they have ended. Nothing that it started lives when it returns.
Outcome train_elastic(const Config& config, Streams& streams);

// What it refuses before it looks at etcd or checkpoints.
Outcome check_elastic(const Config& config);

}  // namespace everstep::launcher
