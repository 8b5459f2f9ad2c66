#include "scheduler/version_checks.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "scheduler/versions.h"

namespace everstep::scheduler {
namespace {

// The first rounds of a window that follows another without a drain may run on either side of the update; all else has
// one version. PipeDream-2BW keeps two versions, and the one of the window must be among them.
Status check_version(const Schedule& schedule, int worker, const Op& op, Version seen, Version in_memory) {
  if (schedule.request.kind == ScheduleKind::kPipedream2bw) {
    if (seen == in_memory || seen.next() == in_memory) return {};
    return broken(at(worker, op) + " reads version " + std::to_string(seen.value) + ", which is not kept there");
  }
  const bool may_lag = op.round < schedule.lagging_rounds(op.window);
  if (seen.value == op.window || (may_lag && seen.value + 1 == op.window)) return {};
  return broken(at(worker, op) + " runs on version " + std::to_string(seen.value) + " of the weights");
}

Status check_seen(const Schedule& schedule, const VersionTable& table) {
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    Version in_memory{schedule.request.first_window};
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      const Version seen = table.seen[worker][i];
      if (op.kind == OpKind::kUpdate) in_memory = seen;
      if (is_compute(op)) EVERSTEP_TRY(check_version(schedule, worker, op, seen, in_memory));
    }
  }
  return {};
}

Status check_buffers(const Schedule& schedule, const VersionTable& table) {
  for (const auto& [worker, stage] : table.doubly_buffered) {
    if (schedule.two_windows_meet(schedule.device_of(worker), stage)) continue;
    return broken("stage " + std::to_string(stage) + " of worker " + std::to_string(worker) +
                  " runs a backward of the next window before the update, and has one gradient buffer only");
  }
  return {};
}

Status check_sums(const Schedule& schedule, const VersionTable& table) {
  for (const auto& [key, count] : table.applied) {
    const auto& [window, stage] = key;
    const WindowSlice& slice = schedule.slices[window - schedule.request.first_window];
    if (count != slice.end - slice.first) {
      return broken("update U" + std::to_string(window) + " applies " + std::to_string(count) + " gradients of stage " +
                    std::to_string(stage) + ", the window has " + std::to_string(slice.end - slice.first));
    }
  }
  for (const auto& [key, count] : table.captured) {
    const auto& [window, round, stage] = key;
    const WindowSlice& slice = schedule.slices[window - schedule.request.first_window];
    const int due = std::min(slice.end - slice.first, (round + 1) * super_round_size(schedule.request));
    if (count != due) {
      return broken("the capture after round " + std::to_string(round) + " of window " + std::to_string(window) +
                    " holds " + std::to_string(count) + " gradients of stage " + std::to_string(stage) + ", not " +
                    std::to_string(due));
    }
  }
  for (const auto& [key, count] : table.provisional_sums) {
    const auto& [window, round, stage] = key;
    const int due = (round + 1) * super_round_size(schedule.request);
    if (count != due) {
      return broken("the provisional step of window " + std::to_string(window) + " has " + std::to_string(count) +
                    " gradients of stage " + std::to_string(stage) + ", not " + std::to_string(due));
    }
  }
  return {};
}

bool is_copy(const Op& op) { return op.kind == OpKind::kCapture || op.kind == OpKind::kProvisional; }

// A sum over replicas can be right although two of them are wrong, so each must stand where it belongs.
Status check_places_of_copies(const Schedule& schedule) {
  const std::size_t stages = schedule.placement.stages();
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    const std::vector<Op>& ops = schedule.workers[worker];
    const auto index = [&](const Op& op) { return (op.window - schedule.request.first_window) * stages + op.stage; };
    std::vector<int> last_round(schedule.slices.size() * stages, -1);
    for (const Op& op : ops) {
      int& last = last_round[index(op)];
      if (op.kind == OpKind::kBackward) last = std::max(last, op.round);
      if (is_copy(op) && last > op.round) return broken(at(worker, op) + " is too late");
    }
    std::vector<int> next_round(schedule.slices.size() * stages, std::numeric_limits<int>::max());
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      int& next = next_round[index(*op)];
      if (op->kind == OpKind::kBackward) next = std::min(next, op->round);
      if (is_copy(*op) && next <= op->round) return broken(at(worker, *op) + " is too early");
    }
  }
  return {};
}

// Of every window, on every worker: each chunk is copied once behind the update before, whose weights and moments the
// step is made from; then comes the step, before the first op of the next window, which reads what it gives.
Status check_provisional_step(const Schedule& schedule) {
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    std::set<std::pair<std::int64_t, int>> copied;  // window, stage
    std::map<std::int64_t, int> stepped;            // by window
    std::int64_t updated = schedule.request.first_window;
    std::int64_t entered = updated;
    for (const Op& op : schedule.workers[worker]) {
      if (is_compute(op)) entered = std::max(entered, op.window);
      if (op.kind == OpKind::kUpdate) updated = op.window + 1;
      if (op.kind != OpKind::kProvisional && op.kind != OpKind::kTrialStep) continue;
      if (schedule.provisional_round(op.window) != op.round) return broken(at(worker, op) + " is not asked for");
      if (entered > op.window) return broken(at(worker, op) + " comes after an op of the next window");
      if (op.kind == OpKind::kTrialStep) {
        if (updated > op.window) return broken(at(worker, op) + " comes after the update of its window");
        if (++stepped[op.window] > 1) return broken(at(worker, op) + " stands there twice");
        continue;
      }
      if (stepped.contains(op.window)) return broken(at(worker, op) + " comes after the step that needs it");
      if (!copied.emplace(op.window, op.stage).second) return broken(at(worker, op) + " stands there twice");
      if (updated < op.window) return broken(at(worker, op) + " comes before the update of the window before");
    }
    const std::size_t chunks = schedule.placement.stages_on(schedule.device_of(worker)).size();
    for (const WindowSlice& slice : schedule.slices) {
      const auto first = copied.lower_bound({slice.window, 0});
      const auto found = static_cast<std::size_t>(std::distance(first, copied.lower_bound({slice.window + 1, 0})));
      const bool has_step = schedule.provisional_round(slice.window).has_value();
      if (found == (has_step ? chunks : 0) && stepped.contains(slice.window) == has_step) continue;
      return broken("worker " + std::to_string(worker) + " lacks a part of the provisional step of window " +
                    std::to_string(slice.window));
    }
  }
  return {};
}

}  // namespace

std::string at(int worker, const Op& op) { return to_string(op) + " of worker " + std::to_string(worker); }

Error broken(std::string message) { return invalid_argument("invalid schedule: " + std::move(message)); }

Status check_versions(const Schedule& schedule) {
  const VersionTable table = trace_versions(schedule);
  EVERSTEP_TRY(check_seen(schedule, table));
  EVERSTEP_TRY(check_buffers(schedule, table));
  EVERSTEP_TRY(check_provisional_step(schedule));
  EVERSTEP_TRY(check_sums(schedule, table));
  return check_places_of_copies(schedule);
}

}  // namespace everstep::scheduler
