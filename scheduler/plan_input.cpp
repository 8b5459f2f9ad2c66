#include "scheduler/plan_input.h"

#include <set>

namespace everstep::scheduler {
namespace {

// A window of an hour-long minibatch still fits into 64 bits of nanoseconds.
constexpr int kLargestWindow = 1'000'000;

// The times of a window a thousand times as slow still fit, too.
constexpr double kSlowest = 1000;

}  // namespace

Status check_plan_input(const ModelProfile& profile, const std::vector<WorkerInfo>& workers,
                        const PlanOptions& options) {
  EVERSTEP_TRY(check(profile));
  EVERSTEP_TRY(check(options.hardware));
  const int blocks = static_cast<int>(profile.blocks.size());
  const int count = static_cast<int>(workers.size());
  if (count < 1) return invalid_argument("a plan needs at least one worker, got " + std::to_string(count));
  std::set<WorkerId> ids;
  for (const WorkerInfo& worker : workers) {
    if (!ids.insert(worker.id).second) return invalid_argument("worker " + to_string(worker.id) + " is listed twice");
    if (!(worker.slowness > 0 && worker.slowness <= kSlowest)) {
      return invalid_argument("the slowness of worker " + to_string(worker.id) + " must be above 0 and at most 1000");
    }
  }
  if (options.window < 1 || options.window > kLargestWindow) {
    return invalid_argument("the window is " + std::to_string(options.window) + " minibatches, must be between 1 and " +
                            std::to_string(kLargestWindow));
  }
  if (options.preload != 1 && options.preload != 2) return invalid_argument("preload must be 1 or 2");
  if (options.redundancy < 0) return invalid_argument("redundancy must not be negative");
  if (options.depth.value_or(1) < 1) return invalid_argument("the depth must be at least 1");
  if (options.width.value_or(1) < 1) return invalid_argument("the width must be at least 1");
  const std::int64_t forced = std::int64_t{options.depth.value_or(1)} * options.width.value_or(1);
  if (options.depth.value_or(1) > blocks) {
    return invalid_argument("depth " + std::to_string(*options.depth) +
                                " needs more stages than the model has blocks (" + std::to_string(blocks) + ")",
                            "choose a smaller depth");
  }
  if (forced > count) {
    return invalid_argument("depth * width = " + std::to_string(forced) + " needs more than the " +
                            std::to_string(count) + " workers there are");
  }
  if (forced > options.window) {
    return invalid_argument("depth * width = " + std::to_string(forced) +
                            " needs a window of at least as many minibatches, got " + std::to_string(options.window));
  }
  if (options.pipelines.value_or(1) < 1) return invalid_argument("the number of pipelines must be at least 1");
  if (options.lag.value_or(0) < 0) return invalid_argument("the lag must not be negative");
  if (options.kind) {
    const ScheduleKind kind = *options.kind;
    const bool planned = kind == ScheduleKind::kAmdp || kind == ScheduleKind::kAmdpSync ||
                         kind == ScheduleKind::kOneFOneB || kind == ScheduleKind::kTwoDirections || is_clockwork(kind);
    if (!planned) {
      return invalid_argument(
          "schedule " + std::string(to_string(kind)) + " is there to compare with, not to plan with",
          "one of amdp, amdp-sync, 1f1b, two-directions, clockwork, clockwork-sync");
    }
    if (options.synchronous && is_asynchronous(kind)) {
      return invalid_argument("schedule " + std::string(to_string(kind)) + " is not synchronous",
                              is_clockwork(kind) ? "use clockwork-sync" : "use amdp-sync");
    }
  }
  if (options.previous) EVERSTEP_TRY(check(*options.previous));
  if (options.previous && options.previous->cuts.back() != blocks) {
    return invalid_argument("the previous plan is for a model with " + std::to_string(options.previous->cuts.back()) +
                            " blocks, this one has " + std::to_string(blocks));
  }
  return {};
}

}  // namespace everstep::scheduler
