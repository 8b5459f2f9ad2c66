#include "scheduler/schedule_summary.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "scheduler/versions.h"

namespace everstep::scheduler {

double busy_share(const Timeline& timeline) {
  Tick busy = 0;
  for (const DeviceUse& use : timeline.workers) busy += use.busy;
  const double total = static_cast<double>(timeline.makespan) * static_cast<double>(timeline.workers.size());
  return total == 0 ? 0 : static_cast<double>(busy) / total;
}

InFlightPeak in_flight_peak(const Schedule& schedule) {
  InFlightPeak peak;
  for (const std::vector<Op>& ops : schedule.workers) {
    InFlightPeak now;
    for (const Op& op : ops) {
      if (!is_compute(op)) continue;
      const int change = op.kind == OpKind::kForward ? 1 : -1;
      now.per_device += change;
      if (op.stage == 0) now.per_first_stage += change;
      peak.per_device = std::max(peak.per_device, now.per_device);
      peak.per_first_stage = std::max(peak.per_first_stage, now.per_first_stage);
    }
  }
  return peak;
}

std::vector<bool> provisional_reads(const Schedule& schedule, int worker) {
  std::vector<bool> reads;
  Version in_memory{schedule.request.first_window};
  for (const Op& op : schedule.workers[worker]) {
    reads.push_back(schedule.reads_provisional(op, in_memory));
    if (op.kind == OpKind::kUpdate) ++in_memory.value;
  }
  return reads;
}

std::vector<int> mismatched_minibatches(const Schedule& schedule) {
  std::set<std::tuple<std::int64_t, int, int, int>> minibatches;
  for (const Mismatch& mismatch : trace_versions(schedule).mismatches) {
    const Op& op = mismatch.backward;
    minibatches.emplace(op.window, mismatch.group, op.round, op.minibatch);
  }
  std::vector<int> counts(schedule.slices.size(), 0);
  for (const auto& minibatch : minibatches) ++counts[std::get<0>(minibatch) - schedule.request.first_window];
  return counts;
}

}  // namespace everstep::scheduler
