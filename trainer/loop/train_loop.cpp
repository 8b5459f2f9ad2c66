#include "trainer/loop/train_loop.h"

#include <algorithm>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

namespace {

Result<TrainResult> train_as(Worker& worker, const TrainOptions& options, const DataSource& data,
                             const TrainHooks& hooks) {
  std::optional<double> validation_loss;
  std::optional<double> measured;  // of the state that the last run() ended with
  const std::int64_t minibatches = std::min(options.evaluate_minibatches, data.validation_minibatches());
  const bool evaluates = options.evaluate_every > 0 && minibatches > 0;
  const std::int64_t between_evaluations = evaluates ? options.evaluate_every : options.steps;
  while (worker.updates() < options.steps && !worker.stopped()) {
    const std::int64_t next_evaluation = (worker.updates() / between_evaluations + 1) * between_evaluations;
    const std::int64_t before = worker.updates();
    EVERSTEP_TRY(worker.run(std::min(next_evaluation, options.steps) - before));
    const std::int64_t after = worker.updates();
    const bool stopped_between = after == before || (after % between_evaluations != 0 && after != options.steps);
    if (after > before) measured.reset();
    if (evaluates && !stopped_between) {
      const auto loss = worker.evaluate(minibatches);
      if (!loss) return loss.error();
      validation_loss = measured = *loss;
      if (hooks.on_validation) hooks.on_validation(worker.updates(), *loss);
    }
    worker.save_if_due(measured);
  }
  const RunEnd end = worker.end();
  if (end != RunEnd::kGroupStop) {
    EVERSTEP_TRY(worker.end_copies());
    worker.hand_over_weights();
  }
  TrainResult result = worker.result();
  result.end = end;
  if (end == RunEnd::kAllSteps || end == RunEnd::kSaveAndEnd) result.saved = worker.save_at_end(measured);
  result.validation_loss = validation_loss;
  result.state = worker.take_end_state();
  return result;
}

}  // namespace

Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                          const TrainHooks& hooks) {
  auto made = Worker::make(options, data, transport, hooks);
  if (!made) return made.error();
  if (hooks.on_begin) hooks.on_begin();
  auto result = train_as(**made, options, data, hooks);
  if (!result) (*made)->refuse_group_stop();
  (*made)->bring_copies_home();
  return result;
}

}  // namespace everstep::trainer
