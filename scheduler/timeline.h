#pragma once

#include <cstdint>
#include <vector>

#include "base/tick.h"
#include "scheduler/execution.h"
#include "scheduler/schedule.h"
#include "scheduler/slowness.h"

namespace everstep::scheduler {

// What one stage costs, for one minibatch or for good.
struct StageCost {
  Tick forward = 1;
  Tick backward = 2;                    // all of it
  Tick weights = 1;                     // the part of it that computes gradients of weights, where it is split
  Tick transfer = 0;                    // of its output to the next stage, or of a gradient to the one before
  Tick reduce = 0;                      // of its gradient to the owner, over all replicas
  std::int64_t activation_bytes = 0;    // kept from forward to backward
  std::int64_t weights_kept_bytes = 0;  // and from a backward until its second half, whatever the kind
  std::int64_t weight_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;  // kept by the owner only
  std::int64_t working_bytes = 0;    // needed besides while it computes
};

struct TimingModel {
  std::vector<StageCost> stages;
  Tick latency = 0;     // of a message between two devices
  Tick update = 0;      // from everybody's arrival at an update until all replicas have the new weights
  Slowness slowness{};  // of forwards and backwards, by device

  // Equal stages on free links: what the drawings in docs/schedules.md use.
  // Half of a backward is for the weights.
  static TimingModel uniform(int stages, Tick forward = 1, Tick backward = 2, Tick update = 0);
};

struct DeviceUse {
  Tick busy = 0;                           // forwards and backwards
  std::int64_t peak_activation_bytes = 0;  // whatever the costs: with the most second halves that may have to wait
  std::int64_t peak_computing_bytes = 0;   // the same, and what the op at hand needs besides
  std::int64_t resident_bytes = 0;         // weights, gradients, optimizer state

  std::int64_t peak_bytes() const { return resident_bytes + peak_computing_bytes; }
};

struct Timeline {
  std::vector<std::vector<OpSpan>> spans;        // parallel to Schedule::workers
  std::vector<std::vector<FloatingOp>> weights;  // as in Execution
  Tick makespan = 0;
  std::vector<DeviceUse> workers;
};

// Times a valid schedule by discrete events. Deterministic: equal inputs give equal ticks everywhere.
Timeline time_schedule(const Schedule& schedule, const TimingModel& model);

// Work and memory of each worker: properties of the order alone.
std::vector<DeviceUse> device_uses(const Schedule& schedule, const TimingModel& model);

// The schedule in its rhythm: how long a window takes when it follows and is followed by others, so that neither the
// first filling nor the last draining of an asynchronous pipeline counts.
struct SteadyState {
  Tick window = 0;
  Tick busy_ticks = 0;  // forwards and backwards of one window, over all devices
  int devices = 1;

  // Share of the window in which the average device computes.
  double busy() const {
    return static_cast<double>(busy_ticks) / (static_cast<double>(window) * static_cast<double>(devices));
  }
};

// Full windows without drains in between are measured, whatever `request` says about windows, starts, stops and
// flushes.
Result<SteadyState> steady_state(ScheduleRequest request, const TimingModel& model);

}  // namespace everstep::scheduler
