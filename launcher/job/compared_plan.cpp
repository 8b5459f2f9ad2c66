#include "launcher/job/compared_plan.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "scheduler/guards.h"
#include "scheduler/partition.h"
#include "scheduler/plan_reason.h"
#include "scheduler/schedule_summary.h"

namespace everstep::launcher {
namespace {

using scheduler::Placement;
using scheduler::Plan;
using scheduler::PlanReport;

}  // namespace

Result<PlanReport> plan_to_compare_with(const scheduler::ModelProfile& profile,
                                        const std::vector<scheduler::WorkerInfo>& workers,
                                        const scheduler::PlanOptions& wishes) {
  const auto count = static_cast<int>(workers.size());
  const Plan* previous = wishes.previous ? &*wishes.previous : nullptr;
  Plan plan;
  plan.kind = *wishes.kind;
  plan.width = wishes.width.value_or(1);
  plan.depth = wishes.depth.value_or(std::max(1, count / plan.width));
  plan.window = wishes.window;
  plan.preload = wishes.preload;
  if (plan.depth * plan.width > count) {
    return invalid_argument("depth * width = " + std::to_string(plan.depth * plan.width) + " needs more than the " +
                            std::to_string(count) + " workers there are");
  }
  const auto placement = Placement::make(plan.kind, plan.depth);
  if (!placement) return placement.error();
  if (std::ssize(profile.blocks) < placement->stages()) {
    return invalid_argument(std::to_string(placement->stages()) + " stages are more than the model has blocks (" +
                                std::to_string(profile.blocks.size()) + ")",
                            "choose a smaller depth");
  }
  plan.pipelines = placement->pipelines();
  if (wishes.pipelines.value_or(plan.pipelines) != plan.pipelines)
    return no_shape(wishes, count, static_cast<int>(profile.blocks.size()));
  plan.cuts = partition_blocks(profile, *placement, scheduler::Balance::kTime);
  seat_workers(plan, profile, workers, previous);
  const auto schedule = make_schedule(request_of(plan));
  if (!schedule) return schedule.error();
  const auto model = timing_model(profile, wishes.hardware, schedule->placement, plan.width, plan.cuts);
  const scheduler::Timeline timeline = time_schedule(*schedule, model);
  std::int64_t peak = 0;
  std::vector<std::int64_t> free_bytes;
  for (const scheduler::DeviceUse& use : device_uses(*schedule, model)) {
    peak = std::max(peak, use.peak_bytes());
    if (std::ssize(free_bytes) < plan.depth) free_bytes.push_back(wishes.hardware.memory_bytes - use.peak_bytes());
  }
  if (peak > wishes.hardware.memory_bytes) {
    return invalid_argument("the fullest worker needs " + gib_text(peak) + ", more than the " +
                                gib_text(wishes.hardware.memory_bytes) + " there are",
                            "a smaller --minibatch or --window, --recompute, or more --memory-gib");
  }
  place_guards(plan, model.stages, workers, wishes.redundancy, free_bytes);
  scheduler::Candidate candidate;
  candidate.kind = plan.kind;
  candidate.depth = plan.depth;
  candidate.pipelines = plan.pipelines;
  candidate.width = plan.width;
  candidate.window_time = timeline.makespan;
  candidate.busy = busy_share(timeline);
  candidate.peak_bytes = peak;
  candidate.moved_bytes = previous != nullptr ? moved_bytes(profile, previous, plan) : 0;
  const int fewest = plan.width * wishes.depth.value_or(1);  // fewer workers are laid out less deep
  candidate.survives = survival_of(plan, model.stages, workers, fewest, free_bytes);
  const bool wished = wishes.provisional != scheduler::ProvisionalWish::kOff;
  const scheduler::NoStep no_step = wished ? scheduler::NoStep::kWindows : scheduler::NoStep::kNotWished;
  return PlanReport{std::move(plan), candidate, {candidate}, "as asked for", no_step};
}

}  // namespace everstep::launcher
