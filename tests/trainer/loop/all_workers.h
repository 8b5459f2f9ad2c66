#pragma once

#include <vector>

#include "tests/trainer/loop/worker_run.h"

namespace everstep::trainer {

// Runs all workers of the plan and returns what they tell, by worker. If one fails, all end, and the error is that of
// the worker that failed first of its own accord.

// As threads of this process. Frames are held back at random, so that nothing can rely on timing.
Result<std::vector<WorkerRun>> run_in_threads(const TrainOptions& options, const DataSource& data,
                                              const RunChanges& changes = {});

// As forked processes that talk over sockets. None outlives the call, whatever happens.
Result<std::vector<WorkerRun>> run_in_processes(const TrainOptions& options, const DataSource& data,
                                                const RunChanges& changes = {});

// What went wrong first, if anything: a dead peer and a cancelled wait follow from somebody else's error.
Result<std::vector<WorkerRun>> all_or_first_error(std::vector<Result<WorkerRun>> runs);

}  // namespace everstep::trainer
