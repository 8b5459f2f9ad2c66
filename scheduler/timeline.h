#pragma once

#include <cstdint>
#include <vector>

#include "base/tick.h"
#include "scheduler/execution.h"
#include "scheduler/schedule.h"

namespace everstep::scheduler {

// What one stage costs, for one minibatch or for good.
struct StageCost {
  Tick forward = 1;
  Tick backward = 2;
  Tick transfer = 0;                  // of its output to the next stage, or of a gradient to the one before
  Tick reduce = 0;                    // of its gradient to the owner, over all replicas
  std::int64_t activation_bytes = 0;  // kept from forward to backward
  std::int64_t weight_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;  // kept by the owner only
};

struct TimingModel {
  std::vector<StageCost> stages;
  Tick latency = 0;  // of a message between two devices
  Tick update = 0;   // from everybody's arrival at an update until all replicas have the new weights

  // Equal stages on free links: what the drawings in docs/schedules.md use.
  static TimingModel uniform(int stages, Tick forward = 1, Tick backward = 2, Tick update = 0);
};

struct DeviceUse {
  Tick busy = 0;  // forwards and backwards
  std::int64_t peak_activation_bytes = 0;
  std::int64_t resident_bytes = 0;  // weights, gradients, optimizer state

  std::int64_t peak_bytes() const { return resident_bytes + peak_activation_bytes; }
};

struct Timeline {
  std::vector<std::vector<OpSpan>> spans;  // parallel to Schedule::workers
  Tick makespan = 0;
  std::vector<DeviceUse> workers;
};

// Times a valid schedule by discrete events. Deterministic: equal inputs give equal ticks everywhere.
Timeline time_schedule(const Schedule& schedule, const TimingModel& model);

// The schedule in its rhythm: how long a window takes when it follows and is followed by others, so that neither the
// first filling nor the last draining of an asynchronous pipeline counts.
struct SteadyState {
  Tick window = 0;
  double busy = 0;  // share of that time in which the average device computes
};

// `request.windows`, `first_minibatch`, `stop_after_rounds` are ignored: full windows are measured.
Result<SteadyState> steady_state(ScheduleRequest request, const TimingModel& model);

// Weights, gradients (twice where two windows meet in one chunk) and optimizer state that a device of this placement
// keeps whatever the time is. `owner_copies` counts versions of optimizer state kept by an owner.
std::int64_t resident_bytes(const Placement& placement, ScheduleKind kind, int device,
                            const std::vector<StageCost>& stages);

}  // namespace everstep::scheduler
