#include "scheduler/versions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "scheduler/execution.h"

namespace everstep::scheduler {
namespace {

// The version that PipeDream-2BW uses for a window: the newest that every stage has when the window's first minibatch
// enters, which is one behind, or the current one right after a drain.
Version double_buffered_version(const Schedule& schedule, std::int64_t window) {
  return {schedule.starts_drained(window) ? window : window - 1};
}

class WorkerWalk {
 public:
  WorkerWalk(const Schedule& schedule, int worker, const ComputeKeys& keys, std::vector<Version>& forward_versions,
             VersionTable& table)
      : schedule_(schedule),
        worker_(worker),
        keys_(keys),
        forward_versions_(forward_versions),
        table_(table),
        buffers_(schedule.placement.stages()),
        version_{schedule.request.first_window} {}

  void run() {
    std::vector<Version>& seen = table_.seen[worker_];
    for (const Op& op : schedule_.workers[worker_]) {
      step(op);
      seen.push_back(is_compute(op) ? read_version(op) : version_);
      table_.provisional[worker_].push_back(schedule_.reads_provisional(op, version_));
    }
  }

 private:
  struct GradientBuffers {
    std::array<int, 2> sums{};  // by window parity, with a gradient of 1 per backward
    bool doubly_buffered = false;

    int& of(std::int64_t window) { return sums[window % 2]; }
  };

  Version read_version(const Op& op) const {
    if (schedule_.request.kind == ScheduleKind::kPipedream2bw) return double_buffered_version(schedule_, op.window);
    return version_;
  }

  void step(const Op& op) {
    GradientBuffers& buffers = buffers_[op.stage];
    switch (op.kind) {
      case OpKind::kForward:
        forward_versions_[forward_key(op)] = read_version(op);
        break;
      case OpKind::kBackward: {
        const Version forward = forward_versions_[forward_key(op)];
        if (forward != read_version(op)) {
          table_.mismatches.push_back({op, schedule_.group_of(worker_), forward, read_version(op)});
        }
        ++buffers.of(op.window);
        if (buffers.sums[0] > 0 && buffers.sums[1] > 0 && !std::exchange(buffers.doubly_buffered, true)) {
          table_.doubly_buffered.emplace_back(worker_, op.stage);
        }
        break;
      }
      case OpKind::kTrialStep:
      case OpKind::kBackwardWeights:  // counted with its backward
        break;
      case OpKind::kStartReduce:
        table_.applied[{op.window, op.stage}] += buffers.of(op.window);
        break;
      case OpKind::kCapture:
        table_.captured[{op.window, op.round, op.stage}] += buffers.of(op.window);
        break;
      case OpKind::kProvisional:
        table_.provisional_sums[{op.window, op.round, op.stage}] += buffers.of(op.window);
        break;
      case OpKind::kUpdate:
        version_ = {op.window + 1};
        for (GradientBuffers& each : buffers_) each.of(op.window) = 0;
        break;
    }
  }

  std::size_t forward_key(const Op& op) const { return keys_.key(schedule_.group_of(worker_), op); }

  const Schedule& schedule_;
  int worker_;
  const ComputeKeys& keys_;
  std::vector<Version>& forward_versions_;
  VersionTable& table_;
  std::vector<GradientBuffers> buffers_;
  Version version_;
};

}  // namespace

VersionTable trace_versions(const Schedule& schedule) {
  const ComputeKeys keys(schedule);
  std::vector<Version> forward_versions(keys.size());
  VersionTable table;
  table.seen.resize(schedule.workers.size());
  table.provisional.resize(schedule.workers.size());
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    WorkerWalk(schedule, worker, keys, forward_versions, table).run();
  }
  return table;
}

}  // namespace everstep::scheduler
