#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace everstep::scheduler {

enum class OpKind : std::uint8_t {
  kForward,      // of one minibatch through one stage
  kBackward,     // of one minibatch through one stage; adds to the window's gradient buffer of that chunk, but in
                 // every worker, and where splits_backwards() says so, it makes the gradient of the input only
  kStartReduce,  // starts summing a window's finished gradient of one stage at its owner; never waits
  kCapture,      // starts copying (and summing) the gradient of one stage as it stands after a round; never waits
  kUpdate,       // applies a window: waits for its reduces, meets all other workers, makes version window + 1

  // The other half of a split backward: adds the gradients of the weights to the buffer. Nobody waits for it until the
  // buffer is reduced or captured, so it has no place in a list: a worker runs it when it has time (see execution.h).
  kBackwardWeights,

  // Copies the gradient of one stage as it stands after a round, for the provisional step; never waits. When a worker
  // has run all of its own for a window, their sums travel to the owners.
  kProvisional,
  // Waits for those sums, makes provisional weights of them on their owners and sends these to the replicas, where the
  // next window reads them until the update.
  kTrialStep,
};

// One entry of a worker's list. Fields that an op does not use are 0: kForward, kBackward and kBackwardWeights use all
// of them, kStartReduce window and stage, kCapture and kProvisional window, round and stage, kTrialStep window and
// round, kUpdate window.
struct Op {
  OpKind kind = OpKind::kForward;
  int stage = 0;
  int minibatch = 0;        // inside the round: 0 … round_size() - 1
  int round = 0;            // inside the window, counted from where this schedule starts it
  std::int64_t window = 0;  // since the start of training

  bool operator==(const Op&) const = default;
};

// Whether it is a forward or a backward, which have inputs and a place in the lists.
constexpr bool is_compute(const Op& op) { return op.kind == OpKind::kForward || op.kind == OpKind::kBackward; }

// Whether it is about one minibatch.
constexpr bool is_of_minibatch(const Op& op) { return is_compute(op) || op.kind == OpKind::kBackwardWeights; }

constexpr Op update_of(std::int64_t window) {
  Op op;
  op.kind = OpKind::kUpdate;
  op.window = window;
  return op;
}

// A worker with so many kBackwardWeights left to do runs one before all else: each of them keeps its activations. At
// depth 1 no worker waits for another's tensors, so there is no time to fill, and none is put off.
constexpr std::size_t most_pending_weights(int depth) { return depth == 1 ? 1 : 2; }

constexpr Op trial_step_of(std::int64_t window, int round) {
  Op op;
  op.kind = OpKind::kTrialStep;
  op.round = round;
  op.window = window;
  return op;
}

// What is left to do when a split backward has run.
constexpr Op weights_of(Op backward) {
  backward.kind = OpKind::kBackwardWeights;
  return backward;
}

// Whether the sum of its stage is read, so that all that belongs to it must have been added before.
constexpr bool closes_sum(const Op& op) {
  return op.kind == OpKind::kStartReduce || op.kind == OpKind::kCapture || op.kind == OpKind::kProvisional;
}

// Text form, one token: `F0.1.3@2` is the forward of window 0, round 1, minibatch 3 at stage 2; `B…` its backward,
// `W…` the gradients of its weights; `R0@2` starts the reduce of window 0, stage 2; `C0.1@2` captures stage 2 after
// round 1; `P0.1@2` copies what is there after round 1 for the provisional step, which is `T0.1`; `U0` applies window
// 0.
std::string to_string(const Op& op);
Result<Op> parse_op(std::string_view text);

}  // namespace everstep::scheduler
