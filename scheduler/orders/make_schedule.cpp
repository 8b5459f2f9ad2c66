#include <algorithm>

#include "scheduler/orders/collectives.h"
#include "scheduler/orders/orders.h"
#include "scheduler/schedule.h"

namespace everstep::scheduler {
namespace {

OrderGenerator generator_of(const ScheduleRequest& request, const Placement& placement) {
  switch (request.kind) {
    case ScheduleKind::kAmdp:
    case ScheduleKind::kAmdpSync:
      return amdp_generator(placement, request.preload);
    case ScheduleKind::kOneFOneB:
      return one_f_one_b_generator(placement);
    case ScheduleKind::kTwoDirections:
      return two_directions_generator(placement);
    case ScheduleKind::kGpipe:
      return gpipe_generator(placement);
    case ScheduleKind::kInterleaved:
      return interleaved_generator(placement);
    case ScheduleKind::kPipedream2bw:
      return pipedream_2bw_generator(placement);
    case ScheduleKind::kClockwork:
    case ScheduleKind::kClockworkSync:
      return clockwork_generator(placement, request.lag);
  }
  EVERSTEP_CHECK(false, "a schedule kind without a generator");
}

std::vector<Segment> segments_of(const Schedule& schedule, int group) {
  std::vector<Segment> segments(1);
  for (const WindowSlice& slice : schedule.slices) {
    // Orders are made for the whole window also where it is left early, so that a worker that is told to stop has
    // already run a part of the order that the stopped schedule has.
    const WindowSlice whole{slice.window, slice.first, schedule.request.window, true};
    WindowWork work{slice.window, {}};
    if (const auto round = provisional_round(schedule.request, slice.first)) {
      work.step = trial_step_of(slice.window, *round);
    }
    for (int round = 0; round < schedule.rounds_in(whole); ++round) {
      work.rounds.push_back(schedule.minibatches_in(whole, round, group));
    }
    segments.back().push_back(std::move(work));
    if (&slice != &schedule.slices.back() && schedule.starts_drained(slice.window + 1)) segments.emplace_back();
  }
  return segments;
}

}  // namespace

MinibatchNames::MinibatchNames(const Segment& segment) {
  for (const WindowWork& work : segment) {
    for (int round = 0; round < static_cast<int>(work.rounds.size()); ++round) {
      for (int minibatch = 0; minibatch < work.rounds[round]; ++minibatch) {
        names_.push_back({work.window, round, minibatch});
      }
    }
  }
}

Op MinibatchNames::op(const OrderStep& step) const {
  const Name& name = names_[step.minibatch];
  const OpKind kind = step.forward ? OpKind::kForward : OpKind::kBackward;
  return {kind, step.stage, name.minibatch, name.round, name.window};
}

Result<Schedule> make_schedule(const ScheduleRequest& request) {
  auto slices = slices_of(request);
  if (!slices) return slices.error();
  auto placement = placement_of(request);
  if (!placement) return placement.error();
  Schedule schedule{request, *placement, *slices, {}};
  const OrderGenerator generate = generator_of(request, schedule.placement);
  for (int group = 0; group < request.width; ++group) {
    std::vector<std::vector<Op>> lists(request.depth);
    for (const Segment& segment : segments_of(schedule, group)) {
      DeviceOrders orders = generate(segment);
      const std::int64_t last_window = segment.back().window;
      const bool complete = schedule.slices[last_window - request.first_window].complete;
      for (int device = 0; device < request.depth; ++device) {
        if (!complete) {
          std::erase_if(orders[device], [&](const Op& op) {
            return op.kind != OpKind::kUpdate && op.round >= schedule.rounds_in(schedule.slice_of(op));
          });
        }
        lists[device].insert(lists[device].end(), orders[device].begin(), orders[device].end());
        if (complete) lists[device].push_back(update_of(last_window));
      }
    }
    for (int device = 0; device < request.depth; ++device) {
      schedule.workers.push_back(with_collectives(schedule, device, lists[device]));
    }
  }
  return schedule;
}

}  // namespace everstep::scheduler
