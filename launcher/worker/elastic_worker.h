#pragma once

#include <string>
#include <vector>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// One worker of an elastic job, until the job is finished or this worker is to leave: `everstep-worker elastic …`, as
// `everstep worker` and the supervisor of a local job start it. Events go to standard error. The first SIGTERM, SIGINT
// or SIGHUP asks it to leave: it is drained, hands over its state and exits with kRestart. A second one ends it at
// once.
ExitCode run_elastic_worker(const std::vector<std::string>& args);

}  // namespace everstep::launcher
