#pragma once

#include <utility>

#include "trainer/loop/worker.h"

namespace everstep::trainer {

// train() with another kind of worker.
template <typename WrongWorker>
class Faulty : public Worker {
 public:
  Faulty(const TrainOptions& options, Transport& transport, const TrainHooks& hooks, scheduler::Schedule shape)
      : Worker(options, transport, hooks, std::move(shape)), worker_(transport.worker()) {}

  static Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                                   const TrainHooks& hooks) {
    auto shape = shape_of(options, transport);
    if (!shape) return shape.error();
    WrongWorker worker(options, transport, hooks, *std::move(shape));
    EVERSTEP_TRY(worker.prepare(data));
    EVERSTEP_TRY(worker.run(options.steps));
    worker.hand_over_weights();
    return worker.result();
  }

 protected:
  bool is_owner_of(int stage) const {
    const scheduler::Schedule& pattern = stream().pattern();
    return pattern.placement.owner_of(stage) == pattern.device_of(worker_);
  }

 private:
  int worker_;
};

}  // namespace everstep::trainer
