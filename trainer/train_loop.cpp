#include "trainer/train_loop.h"

#include <algorithm>

#include "trainer/worker.h"

namespace everstep::trainer {

Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                          const TrainHooks& hooks) {
  auto made = Worker::make(options, data, transport, hooks);
  if (!made) return made.error();
  Worker& worker = **made;
  TrainResult result;
  const std::int64_t minibatches = std::min(options.evaluate_minibatches, data.validation_minibatches());
  const bool evaluates = options.evaluate_every > 0 && minibatches > 0;
  const std::int64_t between_evaluations = evaluates ? options.evaluate_every : options.steps;
  while (worker.version().value < options.steps && !worker.stopped()) {
    EVERSTEP_TRY(worker.run(std::min(between_evaluations, options.steps - worker.version().value)));
    result = worker.result();
    const bool stopped_between = worker.stopped() && worker.version().value % between_evaluations != 0;
    if (!evaluates || stopped_between) continue;
    const auto loss = worker.evaluate(minibatches);
    if (!loss) return loss.error();
    result.validation_loss = *loss;
    if (hooks.on_validation) hooks.on_validation(worker.version().value, *loss);
  }
  worker.hand_over_weights();
  return result;
}

}  // namespace everstep::trainer
