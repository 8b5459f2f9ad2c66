#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/trainer/reference/oracle.h"
#include "trainer/loop/train_loop.h"

namespace everstep::trainer {

// What one worker has to tell after a run.
struct WorkerRun {
  std::int64_t skipped = 0;
  std::vector<StepReport> steps;
  std::vector<double> validation_losses;
  std::map<int, NamedWeights> chunks;  // by stage
};

// What a run does differently from an ordinary one. May be called from several threads or processes at once.
struct RunChanges {
  std::function<Result<TrainResult>(const TrainOptions&, const DataSource&, Transport&, const TrainHooks&)> program =
      train;
  std::function<void(int worker, TrainHooks&)> change_hooks = [](int, TrainHooks&) {};
  // Between the workers of run_in_threads(); threads' own, unless set.
  std::function<std::vector<std::unique_ptr<Transport>>(int workers)> make_transports{};
};

// One worker, from its first op to a clean goodbye.
Result<WorkerRun> run_worker(const TrainOptions& options, const DataSource& data, Transport& transport,
                             const RunChanges& changes);

// For the way from a process to its parent. Times and busy fractions stay behind.
std::string encode_run(const WorkerRun& run);
WorkerRun decode_run(std::string_view bytes);

}  // namespace everstep::trainer
