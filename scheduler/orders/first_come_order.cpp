#include <algorithm>
#include <optional>
#include <tuple>

#include "base/tick.h"
#include "scheduler/orders/orders.h"

namespace everstep::scheduler {
namespace {

constexpr Tick kForward = 1;
constexpr Tick kBackward = 2;

struct Ready {
  Tick since = 0;
  OrderStep step;

  bool comes_before(const Ready& other) const {
    return std::tuple(since, step.minibatch) < std::tuple(other.since, other.step.minibatch);
  }
};

struct Device {
  std::vector<Ready> ready;
  std::optional<OrderStep> running;
  Tick running_until = 0;
  std::vector<int> backwards_left;  // per round
  int current_round = 0;            // the first round with backwards left
};

class Play {
 public:
  Play(const Placement& placement, int minibatches, int in_flight_limit)
      : placement_(placement),
        minibatches_(minibatches),
        devices_(placement.depth()),
        orders_(placement.depth()),
        steps_left_(2 * minibatches * placement.stages()) {
    for (int minibatch = 0; minibatch < minibatches; ++minibatch) {
      for (int stage = 0; stage < placement.stages(); ++stage) {
        std::vector<int>& left = devices_[device_of({false, minibatch, stage})].backwards_left;
        left.resize(round_of(minibatch) + 1);
        ++left.back();
      }
    }
    for (int pipeline = 0; pipeline < placement.pipelines(); ++pipeline) {
      next_of_pipeline_.push_back(pipeline);
      for (int i = 0; i < in_flight_limit; ++i) admit_next(pipeline);
    }
  }

  std::vector<std::vector<OrderStep>> run() {
    for (Tick now = 0; steps_left_ > 0; ++now) {
      for (Device& device : devices_) {
        if (device.running && device.running_until == now) finish(now, device);
      }
      for (int device = 0; device < placement_.depth(); ++device) start_next(now, device);
    }
    return std::move(orders_);
  }

 private:
  int round_of(int minibatch) const { return minibatch / placement_.depth(); }
  int pipeline_of(const OrderStep& step) const { return step.minibatch % placement_.pipelines(); }
  int device_of(const OrderStep& step) const { return placement_.device_of(pipeline_of(step), step.stage); }

  void make_ready(Tick now, const OrderStep& step) { devices_[device_of(step)].ready.push_back({now, step}); }

  // A minibatch waits for its admission only: it counts as ready from the start.
  void admit_next(int pipeline) {
    int& next = next_of_pipeline_[pipeline];
    if (next >= minibatches_) return;
    make_ready(0, {true, next, 0});
    next += placement_.pipelines();
  }

  bool may_start(const Device& device, const OrderStep& step) const {
    return step.forward || round_of(step.minibatch) == device.current_round;
  }

  void start_next(Tick now, int index) {
    Device& device = devices_[index];
    if (device.running) return;
    auto best = device.ready.end();
    for (auto candidate = device.ready.begin(); candidate != device.ready.end(); ++candidate) {
      if (!may_start(device, candidate->step)) continue;
      if (best == device.ready.end() || candidate->comes_before(*best)) best = candidate;
    }
    if (best == device.ready.end()) return;
    device.running = best->step;
    device.running_until = now + (best->step.forward ? kForward : kBackward);
    orders_[index].push_back(best->step);
    *best = device.ready.back();
    device.ready.pop_back();
  }

  void finish(Tick now, Device& device) {
    const OrderStep step = *device.running;
    device.running.reset();
    --steps_left_;
    if (step.forward) {
      const bool last = step.stage == placement_.stages() - 1;
      make_ready(now, {!last, step.minibatch, last ? step.stage : step.stage + 1});
      return;
    }
    if (step.stage == 0) admit_next(pipeline_of(step));
    --device.backwards_left[round_of(step.minibatch)];
    while (device.current_round < static_cast<int>(device.backwards_left.size()) &&
           device.backwards_left[device.current_round] == 0) {
      ++device.current_round;
    }
    if (step.stage > 0) make_ready(now, {false, step.minibatch, step.stage - 1});
  }

  const Placement& placement_;
  int minibatches_;
  std::vector<Device> devices_;
  std::vector<int> next_of_pipeline_;  // the minibatch that each admits next
  std::vector<std::vector<OrderStep>> orders_;
  int steps_left_;
};

}  // namespace

std::vector<std::vector<OrderStep>> first_come_order(const Placement& placement, int minibatches, int in_flight_limit) {
  return Play(placement, minibatches, in_flight_limit).run();
}

}  // namespace everstep::scheduler
