#include "scheduler/validate.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "scheduler/clock_checks.h"
#include "scheduler/execution.h"
#include "scheduler/version_checks.h"

namespace everstep::scheduler {
namespace {

// ---- complete ----

bool belongs_to(const Schedule& schedule, int worker, const Op& op) {
  const int group = schedule.group_of(worker);
  if (op.kind == OpKind::kBackwardWeights) return false;
  if (!is_compute(op)) {
    const auto& held = schedule.placement.stages_on(schedule.device_of(worker));
    if (op.kind == OpKind::kTrialStep) return op.stage == 0 && op.minibatch == 0;
    return op.kind == OpKind::kUpdate || std::find(held.begin(), held.end(), op.stage) != held.end();
  }
  return op.minibatch < schedule.minibatches_in(schedule.slice_of(op), op.round, group) &&
         schedule.worker_of(group, schedule.pipeline_of(op), op.stage) == worker;
}

// A backward that stands nowhere, with its worker.
std::string first_missing(const Schedule& schedule, const ComputeKeys& keys, const std::vector<char>& backwards) {
  for (const WindowSlice& slice : schedule.slices) {
    for (int round = 0; round < schedule.rounds_in(slice); ++round) {
      for (int group = 0; group < schedule.request.width; ++group) {
        for (int minibatch = 0; minibatch < schedule.minibatches_in(slice, round, group); ++minibatch) {
          for (int stage = 0; stage < schedule.placement.stages(); ++stage) {
            const Op op{OpKind::kBackward, stage, minibatch, round, slice.window};
            if (backwards[keys.key(group, op)] != 0) continue;
            return at(schedule.worker_of(group, schedule.pipeline_of(op), stage), op);
          }
        }
      }
    }
  }
  return "nothing";
}

Status check_complete(const Schedule& schedule) {
  const ComputeKeys keys(schedule);
  std::vector<char> forwards(keys.size(), 0);
  std::vector<char> backwards(keys.size(), 0);
  std::size_t pairs = 0;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    const int group = schedule.group_of(worker);
    for (const Op& op : schedule.workers[worker]) {
      if (!keys.contains(group, op) || !belongs_to(schedule, worker, op)) {
        return broken(at(worker, op) + " does not belong there");
      }
      if (!is_compute(op)) continue;
      const std::size_t key = keys.key(group, op);
      char& done = (op.kind == OpKind::kForward ? forwards : backwards)[key];
      if (std::exchange(done, 1) != 0) return broken(at(worker, op) + " stands there twice");
      if (op.kind == OpKind::kBackward) {
        if (forwards[key] == 0) return broken(at(worker, op) + " comes before its forward");
        ++pairs;
      }
    }
  }
  std::size_t expected = 0;
  for (const WindowSlice& slice : schedule.slices) expected += slice.end - slice.first;
  if (pairs == expected * schedule.placement.stages()) return {};
  return broken(first_missing(schedule, keys, backwards) + " is missing");
}

// ---- in order ----

// The collectives and updates that a worker must show, in order; updates stand after the reduces of their window.
std::vector<Op> expected_meetings(const Schedule& schedule, int device) {
  std::vector<Op> expected;
  const auto& stages = schedule.placement.stages_on(device);
  const auto append = [&](OpKind kind, int round, std::int64_t window) {
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      expected.push_back({kind, *stage, 0, round, window});
    }
  };
  const int every = schedule.request.capture_every_rounds;
  for (const WindowSlice& slice : schedule.slices) {
    const int rounds = schedule.rounds_in(slice);
    for (int round = 0; round < rounds; ++round) {
      const bool periodic = every > 0 && (round + 1) % every == 0 && round + 1 < rounds &&
                            round + 1 >= schedule.rounds_before_cut(slice.window);
      const bool at_the_stop = !slice.complete && round + 1 == rounds;
      if (periodic || at_the_stop) append(OpKind::kCapture, round, slice.window);
    }
    if (!slice.complete) continue;
    if (rounds > 0) append(OpKind::kStartReduce, 0, slice.window);
    expected.push_back(update_of(slice.window));
  }
  return expected;
}

// The meetings as the worker starts them. In clockwork the reduce of a capture waits for its turn, so captures that
// follow each other count in the order of their turns.
std::vector<Op> meetings_of(const Schedule& schedule, int worker) {
  std::vector<Op> meetings;
  for (const Op& op : schedule.workers[worker]) {
    if (!is_compute(op) && op.kind != OpKind::kProvisional && op.kind != OpKind::kTrialStep) meetings.push_back(op);
  }
  if (!is_clockwork(schedule.request.kind)) return meetings;
  const auto is_capture = [](const Op& op) { return op.kind == OpKind::kCapture; };
  for (auto begin = meetings.begin(); begin != meetings.end();) {
    begin = std::find_if(begin, meetings.end(), is_capture);
    const auto end = std::find_if_not(begin, meetings.end(), is_capture);
    std::sort(begin, end, [](const Op& a, const Op& b) {
      return std::tuple(a.window, a.round, -a.stage) < std::tuple(b.window, b.round, -b.stage);
    });
    begin = end;
  }
  return meetings;
}

Status check_meetings(const Schedule& schedule) {
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    const std::vector<Op> expected = expected_meetings(schedule, schedule.device_of(worker));
    std::size_t next = 0;
    for (const Op& op : meetings_of(schedule, worker)) {
      if (next == expected.size()) return broken(at(worker, op) + " comes after the last expected collective");
      if (op != expected[next]) {
        return broken(at(worker, op) + " stands where " + to_string(expected[next]) +
                      " is due: members of a mirror group would start collectives in different orders");
      }
      ++next;
    }
    if (next < expected.size())
      return broken("worker " + std::to_string(worker) + " lacks " + to_string(expected[next]));
  }
  return {};
}

Status check_links(const Schedule& schedule) {
  // What each op sends to another worker, and what each op expects from another worker, named by the producing op.
  std::map<std::pair<int, int>, std::vector<Op>> sent;
  std::map<std::pair<int, int>, std::vector<Op>> consumed;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    const int group = schedule.group_of(worker);
    for (const Op& op : schedule.workers[worker]) {
      if (!is_compute(op)) continue;
      const int onward = op.kind == OpKind::kForward ? 1 : -1;
      const auto neighbour = [&](int stage) { return schedule.worker_of(group, schedule.pipeline_of(op), stage); };
      const int last = schedule.placement.stages() - 1;
      if (const int to = op.stage + onward; to >= 0 && to <= last) sent[{worker, neighbour(to)}].push_back(op);
      if (const int from = op.stage - onward; from >= 0 && from <= last) {
        Op producer = op;
        producer.stage = from;
        consumed[{neighbour(from), worker}].push_back(producer);
      }
    }
  }
  for (const auto& [link, ops] : sent) {
    const auto& wanted = consumed[link];
    const auto [sent_op, wanted_op] = std::mismatch(ops.begin(), ops.end(), wanted.begin(), wanted.end());
    if (sent_op == ops.end() || link.first == link.second) continue;
    return broken("worker " + std::to_string(link.second) + " expects " + to_string(*wanted_op) + " from worker " +
                  std::to_string(link.first) + ", which sends " + to_string(*sent_op) + " first");
  }
  return {};
}

// ---- bounded ----

Status check_in_flight(const Schedule& schedule) {
  const InFlightLimits limits = in_flight_limits(schedule);
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    int on_device = 0;
    int at_first_stage = 0;
    for (const Op& op : schedule.workers[worker]) {
      if (!is_compute(op)) continue;
      const int change = op.kind == OpKind::kForward ? 1 : -1;
      on_device += change;
      if (op.stage == 0) at_first_stage += change;
      if (on_device > limits.per_device || at_first_stage > limits.per_first_stage) {
        return broken(at(worker, op) + " exceeds the bound of minibatches in flight (" +
                      std::to_string(limits.per_first_stage) + " at stage 0, " + std::to_string(limits.per_device) +
                      " on a device)");
      }
    }
  }
  return {};
}

}  // namespace

InFlightLimits in_flight_limits(const Schedule& schedule) {
  const int depth = schedule.depth();
  const int chunks = schedule.placement.stages() / depth;
  switch (schedule.request.kind) {
    case ScheduleKind::kAmdp:
    case ScheduleKind::kAmdpSync:
      return {depth == 2 ? 2 : schedule.request.preload + 1, depth};
    case ScheduleKind::kOneFOneB:
    case ScheduleKind::kPipedream2bw:
      return {depth, depth};
    case ScheduleKind::kTwoDirections:
      return {depth / 2 + 1, depth + 2};
    case ScheduleKind::kInterleaved:
      return {2 * depth, 2 * (depth - 1) + (chunks - 1) * depth + 1};
    case ScheduleKind::kClockwork:
    case ScheduleKind::kClockworkSync: {
      // A device runs a forward and a backward in turn, so the number on it is the average, and a half more or less.
      const int per_pipeline = depth / schedule.placement.pipelines();
      return {per_pipeline, (depth + per_pipeline) / 2};
    }
    case ScheduleKind::kGpipe:
      break;
  }
  return {schedule.request.window, schedule.request.window};
}

Status validate(const Schedule& schedule) {
  EVERSTEP_TRY(check_complete(schedule));
  EVERSTEP_TRY(check_meetings(schedule));
  struct NoCosts {
    Tick compute(int, const Op&) const { return 1; }
    MessageCost message(int, int, const Op&) const { return {}; }
    Tick reduce(int) const { return 0; }
    Tick update() const { return 0; }
    Tick provisional() const { return 0; }
  };
  if (const auto hang = execute(schedule, NoCosts{}).hang) {
    return broken(at(hang->worker, hang->op) + " would hang, waiting " + hang->reason);
  }
  EVERSTEP_TRY(check_links(schedule));
  EVERSTEP_TRY(check_clock(schedule));
  EVERSTEP_TRY(check_in_flight(schedule));
  return check_versions(schedule);
}

}  // namespace everstep::scheduler
