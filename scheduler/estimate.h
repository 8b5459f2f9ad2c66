#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/placement.h"
#include "scheduler/profile.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// A schedule kind at a depth, with the model cut for it: everything about a candidate but its width.
struct PlanShape {
  ScheduleKind kind;
  Placement placement;
  Cuts cuts;
  std::vector<std::int64_t> peak_bytes;  // per device
  Slowness slowness{};
  int lag = 0;                     // of the update, in clockwork
  int provisional = 0;             // super-rounds that a provisional step leaves out; 0: there is none
  bool has_room_for_step = false;  // whether the memory of such a step is counted though there is none

  std::int64_t largest_peak() const;
};

// Cuts by time; by memory if only that fits. Needs a valid placement with no more stages than blocks.
PlanShape make_shape(const ModelProfile& profile, const Hardware& hardware, ScheduleKind kind,
                     const Placement& placement, const Slowness& slowness = {}, bool has_room_for_step = false);

// The same shape, updated so many slots later: what it gains in time it may need in gradient buffers.
PlanShape with_lag(const ModelProfile& profile, const Hardware& hardware, PlanShape shape, int lag);

// The same shape with a provisional step, which needs memory; or with none, and no room for one (0).
PlanShape with_provisional(const ModelProfile& profile, const Hardware& hardware, PlanShape shape, int left_out);

// Minibatches of a window that the busiest group runs.
int largest_share(int window, int round_size, int width);

// Quick, and never more than what window_time() finds: the work of the busiest device and what it cannot overlap.
Tick window_time_bound(const ModelProfile& profile, const Hardware& hardware, const PlanShape& shape, int window,
                       int width);

// One window in steady state.
SteadyState window_time(const ModelProfile& profile, const Hardware& hardware, const PlanShape& shape, int window,
                        int width, int preload);

}  // namespace everstep::scheduler
