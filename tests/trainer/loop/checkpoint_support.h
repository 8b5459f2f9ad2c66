#pragma once

#include <vector>

#include "tests/trainer/checkpoints/memory_checkpoints.h"
#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/training_support.h"

namespace everstep::trainer {

// A run in threads with its checkpoints.
struct CheckpointedRun {
  std::vector<MemoryCheckpoint> checkpoints;  // the last one holds the state at the end
  std::vector<StepReport> steps;              // as worker 0 saw them
  std::vector<int> skipped;
  std::vector<double> validation_losses;
};

// Trains from the beginning, or from `from`; the end is always saved.
inline CheckpointedRun train_with_checkpoints(TrainOptions options, const DataSource& data,
                                              const MemoryCheckpoint* from = nullptr, bool continues_live = false,
                                              const std::function<bool(int worker)>& busy = {},
                                              const std::function<void(TrainHooks&)>& change_hooks = {}) {
  options.checkpoints.at_end = true;
  if (from != nullptr) options = resumed(options, *from, continues_live);
  MemoryCheckpoints store(options);
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    store.save_here(worker, hooks, [busy, worker] { return busy && busy(worker); });
    if (from != nullptr) restore_from(*from, options, hooks);
    if (change_hooks) change_hooks(hooks);
  };
  const auto runs = run_in_threads(options, data, changes);
  EVERSTEP_CHECK(runs.ok(), runs.error().line());
  return {store.complete(), runs->front().steps, store.skipped(), runs->front().validation_losses};
}

// Losses and norms of two runs at the steps that both made; empty if they are equal in every bit.
inline std::string difference_in_steps(const std::vector<StepReport>& expected, const std::vector<StepReport>& steps) {
  for (const StepReport& step : steps) {
    const StepReport& same = expected[step.step - 1];
    if (same.loss != step.loss || same.gradient_norm != step.gradient_norm) {
      return "step " + std::to_string(step.step) + " differs";
    }
  }
  return "";
}

}  // namespace everstep::trainer
