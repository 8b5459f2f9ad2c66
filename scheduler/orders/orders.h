#pragma once

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "scheduler/op.h"
#include "scheduler/placement.h"

// The generators behind make_schedule: one function per schedule, one file each. They decide the order of forwards,
// backwards, trial steps and the updates *inside* a segment; make_schedule adds the update at a segment's end, the
// reduces and the captures, which follow one rule for every kind.
//
// A minibatch that does not exist (partial last round) is left out of the order made for a full round. Leaving out all
// ops of a minibatch keeps an order free of deadlock and keeps links in order, since ops of other minibatches never
// wait for it.
namespace everstep::scheduler {

// What one group runs of one window: how many minibatches it has in each round (round_size(), but perhaps fewer in the
// last).
struct WindowWork {
  std::int64_t window = 0;
  std::vector<int> rounds;
  std::optional<Op> step{};  // kTrialStep, where the window has a provisional step

  int minibatches() const { return std::accumulate(rounds.begin(), rounds.end(), 0); }
};

// Windows between two drains. Synchronous kinds have one window per segment.
using Segment = std::vector<WindowWork>;

// One list per device of the group.
using DeviceOrders = std::vector<std::vector<Op>>;

using OrderGenerator = std::function<DeviceOrders(const Segment&)>;

// Each keeps a reference to the placement.
OrderGenerator amdp_generator(const Placement& placement, int preload);
OrderGenerator one_f_one_b_generator(const Placement& placement);
OrderGenerator two_directions_generator(const Placement& placement);
OrderGenerator gpipe_generator(const Placement& placement);
OrderGenerator interleaved_generator(const Placement& placement);
OrderGenerator pipedream_2bw_generator(const Placement& placement);
OrderGenerator clockwork_generator(const Placement& placement, int lag);

// A forward or backward while an order is being found; `minibatch` counts through the whole order.
struct OrderStep {
  bool forward = true;
  int minibatch = 0;
  int stage = 0;
};

// Names the minibatches of one group, numbered 0, 1, … through all windows of a segment.
class MinibatchNames {
 public:
  explicit MinibatchNames(const Segment& segment);

  int count() const { return static_cast<int>(names_.size()); }
  Op op(const OrderStep& step) const;

 private:
  struct Name {
    std::int64_t window;
    int round;
    int minibatch;
  };
  std::vector<Name> names_;
};

// Plays one group on integer time (forward 1, backward 2, messages 0) and returns what each device did, in order. A
// free device takes the op that became ready first, then the smaller minibatch, so links stay in order. Minibatch i
// runs in pipeline i mod P; a pipeline holds at most `in_flight_limit` at its stage 0; minibatches i and j with i / D <
// j / D run their backwards in that order on every device, so that a cut between the rounds exists. Whatever it returns
// is free of deadlock: it has just been run.
std::vector<std::vector<OrderStep>> first_come_order(const Placement& placement, int minibatches, int in_flight_limit);

}  // namespace everstep::scheduler
