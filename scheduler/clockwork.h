#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

#include "scheduler/schedule.h"

// Where the ops of clockwork stand in time. A *slot* is the time in which a device runs one forward or one backward
// (the gradient of the input) and half of what it has to do for the gradients of weights: every device runs a forward
// in one slot and a backward in the next.
//
// P pipelines start D/P devices apart, and all climb the ring. A round is P minibatches, one per pipeline, and takes 2P
// slots. Pipeline j is late by its *phase*. In round r it runs the forward of stage s at slot phase + 2Pr + s, and its
// backward at slot phase + 2Pr + 2D - 1 - s. So a message always has one slot for its way, tensors arrive in the order
// in which they were sent, and no device has two ops in one slot.
namespace everstep::scheduler {

// Whether P pipelines can be laid over D devices: one always can, several if P goes into D an even number of times.
constexpr bool is_clockwork_shape(int depth, int pipelines) {
  return depth >= 1 && pipelines >= 1 && (pipelines == 1 || (depth % pipelines == 0 && depth / pipelines % 2 == 0));
}

// D/2 pipelines where the depth is even, so that stage 0 of a pipeline has at most two minibatches in flight; else one.
constexpr int usual_clockwork_pipelines(int depth) { return depth % 2 == 0 ? depth / 2 : 1; }

// All numbers of pipelines at a depth, the largest first.
std::vector<int> clockwork_pipelines(int depth);

class Clock {
 public:
  using Slot = std::int64_t;

  // Needs is_clockwork_shape(depth, pipelines) and lag >= 0.
  Clock(int depth, int pipelines, int lag = 0);

  Slot round_length() const { return Slot{2} * pipelines_; }
  int phase(int pipeline) const { return static_cast<int>(std::int64_t{2} * stride_ * pipeline % round_length()); }

  // Which pipeline has the stage on the device; it must be one that the device holds.
  int pipeline_at(int device, int stage) const { return (device - stage + depth_) % depth_ / (depth_ / pipelines_); }

  Slot forward(int pipeline, std::int64_t round, int stage) const {
    return phase(pipeline) + round_length() * round + stage;
  }
  Slot backward(int pipeline, std::int64_t round, int stage) const {
    return phase(pipeline) + round_length() * round + Slot{2} * depth_ - 1 - stage;
  }

  // The update of a window stands on every device behind the last op up to this slot: `lag` slots after the last
  // backward of the window's last round, which counts as a full one. `rounds` is how many rounds end with the window.
  Slot update(std::int64_t rounds) const {
    return latest_phase() + round_length() * (rounds - 1) + Slot{2} * depth_ - 1 + lag_;
  }

  // In windows that follow another without a drain: how many rounds have a forward before the update of the window
  // before.
  int lagging_rounds() const;

  // Whether a backward of the next window comes before the update in this chunk, so that it needs a second gradient
  // buffer.
  bool two_windows_meet(int device, int stage) const;

  // How many rounds a provisional step may leave out in windows of so many rounds: its sums must be closed everywhere
  // before the next window's first slot, and nowhere before the update of the window before.
  ProvisionalRange provisional_range(int rounds) const;

  // The largest lag at which an update comes before the second window after it, and before the first reduce of the next
  // one, whatever its own lag. So many groups share a window of so many minibatches.
  int largest_lag(int window, int width) const;

 private:
  // Phases are even multiples of the stride, modulo a round.
  int latest_phase() const { return 2 * (pipelines_ - std::gcd(stride_, pipelines_)); }

  int depth_;
  int pipelines_;
  int lag_;
  int stride_;
};

}  // namespace everstep::scheduler
