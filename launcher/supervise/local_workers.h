#pragma once

#include "launcher/cli/config.h"
#include "launcher/job/run_directory.h"
#include "launcher/supervise/worker_processes.h"

namespace everstep::launcher {

// How to start a worker of an elastic job as a child: the options of the run that are about this host, from the
// configuration of `everstep train` with --etcd as URLs. With --metrics each has a port of its own, the given one and
// those behind it. `device` is its own of the kind that the job has; empty: the first.
WorkerStart local_worker(const Config& config, const RunDirectory& directory, int number,
                         const std::string& name_prefix = {}, const std::string& device = {});

}  // namespace everstep::launcher
