#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "base/ids.h"
#include "scheduler/op.h"
#include "trainer/update/anomaly.h"

namespace everstep::trainer {

// The second half of a backward, which adds the gradients of the weights.
struct WeightsOp {
  scheduler::Op op;  // kBackwardWeights
  Position position;
  int parity = 0;                // of the gradients, as in the first half
  SourceWatch::Tensors tensors;  // what the first half met
};

// The second halves that a worker has not run yet. They have no place in its list: they fill the time in which it
// would wait. Nobody needs them before a sum is closed, and a chunk's keep their order, so that sums have the same bits
// whenever they run.
class PendingWeights {
 public:
  // How the worker's next op stands.
  struct Next {
    scheduler::Op op;
    bool closes = false;              // it reads the sums of its stage, or the flags and sources of its window
    std::function<bool()> can_begin;  // whether all that it waits for has come; asked only if it decides
  };

  // `most`: see scheduler::most_pending_weights().
  explicit PendingWeights(std::size_t most) : most_(most) {}

  bool empty() const { return pending_.empty(); }
  void add(WeightsOp weights) { pending_.push_back(std::move(weights)); }

  // What is to be run before the next op, if anything: the oldest of what that op closes; else the oldest of all if
  // there are as many as there may be, each of which keeps activations, or if the next op cannot begin. Takes it out.
  std::optional<WeightsOp> take_before(const Next& next);

  // The oldest, before all sums are read; nothing if there is none.
  std::optional<WeightsOp> take_oldest();

 private:
  template <typename Predicate>
  std::optional<WeightsOp> take_first(const Predicate& fits);

  std::size_t most_;
  std::deque<WeightsOp> pending_;  // in the order of their first halves
};

}  // namespace everstep::trainer
