#include "scheduler/estimate.h"

#include <algorithm>

#include "scheduler/partition.h"

namespace everstep::scheduler {
namespace {

// An order repeats from round to round, so the time of a window grows by the same amount with every further D
// minibatches. Clockwork repeats sooner: its rounds are shorter.
int timed_rounds(ScheduleKind kind) { return is_clockwork(kind) ? 2 : 6; }

// What a provisional step leaves out must be in what is timed, and what comes before the update of the window before.
int timed_rounds(const PlanShape& shape) {
  if (shape.provisional == 0) return timed_rounds(shape.kind);
  const int left_out = shape.provisional * shape.placement.round_size() / shape.placement.depth() + 1;
  return std::max(timed_rounds(shape.kind), left_out + 3);
}

TimingModel model_of(const PlanShape& shape, const ModelProfile& profile, const Hardware& hardware, int width) {
  TimingModel model = timing_model(profile, hardware, shape.placement, width, shape.cuts);
  model.slowness = shape.slowness;
  return model;
}

ScheduleRequest group_request(const PlanShape& shape, int minibatches, int preload) {
  ScheduleRequest request = request_for(shape.kind, shape.placement.depth(), shape.placement.pipelines());
  request.window = minibatches;
  request.preload = preload;
  request.lag = shape.lag;
  request.provisional = shape.provisional;
  return request;
}

void measure(PlanShape& shape, const ModelProfile& profile, const Hardware& hardware) {
  const TimingModel model = model_of(shape, profile, hardware, 1);
  // In-flight minibatches peak within two rounds, whatever the window; in clockwork when the first one comes back.
  const int depth = shape.placement.depth();
  const int minibatches = is_clockwork(shape.kind) ? depth + shape.placement.pipelines() : 2 * depth;
  ScheduleRequest request = group_request(shape, minibatches, 2);
  request.lag = 0;  // a window alone has no update that could wait, and nothing follows it
  request.provisional = 0;
  auto schedule = make_schedule(request);
  EVERSTEP_CHECK(schedule.ok(), schedule.error().line());
  schedule->request.lag = shape.lag;
  schedule->request.provisional = shape.provisional > 0 || shape.has_room_for_step ? 1 : 0;
  shape.peak_bytes.clear();
  for (const DeviceUse& use : device_uses(*schedule, model)) shape.peak_bytes.push_back(use.peak_bytes());
}

}  // namespace

std::int64_t PlanShape::largest_peak() const { return *std::max_element(peak_bytes.begin(), peak_bytes.end()); }

PlanShape make_shape(const ModelProfile& profile, const Hardware& hardware, ScheduleKind kind,
                     const Placement& placement, const Slowness& slowness, bool has_room_for_step) {
  PlanShape by_time{kind, placement, partition_blocks(profile, placement, Balance::kTime, slowness), {}, slowness};
  by_time.has_room_for_step = has_room_for_step;
  measure(by_time, profile, hardware);
  if (by_time.largest_peak() <= hardware.memory_bytes) return by_time;
  PlanShape by_memory = by_time;
  by_memory.cuts = partition_blocks(profile, placement, Balance::kMemory);
  measure(by_memory, profile, hardware);
  return by_memory.largest_peak() < by_time.largest_peak() ? by_memory : by_time;
}

PlanShape with_lag(const ModelProfile& profile, const Hardware& hardware, PlanShape shape, int lag) {
  shape.lag = lag;
  measure(shape, profile, hardware);
  return shape;
}

PlanShape with_provisional(const ModelProfile& profile, const Hardware& hardware, PlanShape shape, int left_out) {
  shape.provisional = left_out;
  shape.has_room_for_step = false;
  measure(shape, profile, hardware);
  return shape;
}

int largest_share(int window, int round_size, int width) {
  const int super_round = round_size * width;
  return window / super_round * round_size + std::min(round_size, window % super_round);
}

Tick window_time_bound(const ModelProfile& profile, const Hardware& hardware, const PlanShape& shape, int window,
                       int width) {
  const Placement& placement = shape.placement;
  const TimingModel model = model_of(shape, profile, hardware, width);
  const int share = largest_share(window, placement.round_size(), width);
  // A pipeline has at least this many of the share's minibatches.
  const int per_pipeline = share / placement.pipelines();
  Tick bound = 0;
  for (int device = 0; device < placement.depth(); ++device) {
    Tick work = 0;
    for (const int stage : placement.stages_on(device)) {
      work += per_pipeline * (slowed(model.stages[stage].forward, shape.slowness, device) +
                              slowed(model.stages[stage].backward, shape.slowness, device));
    }
    if (placement.pipelines() == 1 && !is_asynchronous(shape.kind)) {
      // Before its first forward a stage waits for all stages before it, and the update waits for its reduce.
      for (int stage = 0; stage < device; ++stage) {
        work += slowed(model.stages[stage].forward, shape.slowness, placement.owner_of(stage));
      }
      work += model.stages[device].reduce;
    }
    bound = std::max(bound, work);
  }
  return bound + model.update;
}

SteadyState window_time(const ModelProfile& profile, const Hardware& hardware, const PlanShape& shape, int window,
                        int width, int preload) {
  const TimingModel model = model_of(shape, profile, hardware, width);
  const int depth = shape.placement.depth();
  const int share = largest_share(window, shape.placement.round_size(), width);
  const int untimed_rounds = std::max(0, share / depth - timed_rounds(shape));
  const int timed = share - untimed_rounds * depth;
  const auto steady = [&](int minibatches) {
    const auto result = steady_state(group_request(shape, minibatches, preload), model);
    EVERSTEP_CHECK(result.ok(), result.error().line());
    return *result;
  };
  SteadyState result = steady(timed);
  if (untimed_rounds > 0) {
    const SteadyState longer = steady(timed + depth);
    result.window += untimed_rounds * (longer.window - result.window);
    result.busy_ticks += untimed_rounds * (longer.busy_ticks - result.busy_ticks);
  }
  return result;
}

}  // namespace everstep::scheduler
