#include "launcher/train/train_plan.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/version.h"
#include "launcher/commands/planning_options.h"
#include "scheduler/guards.h"
#include "scheduler/partition.h"
#include "scheduler/plan_text.h"
#include "scheduler/stragglers.h"
#include "scheduler/timeline.h"

namespace everstep::launcher {
namespace {

using scheduler::Placement;
using scheduler::Plan;
using scheduler::ScheduleKind;
using Workers = std::vector<scheduler::WorkerInfo>;

// What one core reaches. Only the ratio of compute to messages depends on it.
constexpr double kFlopsPerWorker = 50e9;

bool is_only_compared(ScheduleKind kind) { return kind == ScheduleKind::kGpipe || kind == ScheduleKind::kInterleaved; }

std::chrono::nanoseconds milliseconds_of(double ms, double share) {
  return std::chrono::nanoseconds(std::llround(ms * 1e6 * share));
}

std::string gib_text(std::int64_t bytes) { return fixed_text(static_cast<double>(bytes) / (1 << 30), 2) + " GiB"; }

std::int64_t largest_peak(const scheduler::Schedule& schedule, const scheduler::TimingModel& model) {
  std::int64_t largest = 0;
  for (const scheduler::DeviceUse& use : device_uses(schedule, model)) largest = std::max(largest, use.peak_bytes());
  return largest;
}

// The copies that checkpoints are written from, on the worker with most of them: owners' state, and in an asynchronous
// pipeline the weights before.
std::int64_t staging_bytes(const Plan& plan, const scheduler::ModelProfile& profile) {
  const auto placement = Placement::make(plan.kind, plan.depth);
  EVERSTEP_CHECK(placement.ok(), "a plan that was made has a placement");
  const int weight_versions = is_asynchronous(plan.kind) ? 2 : 1;
  std::vector<std::int64_t> bytes(plan.depth);
  for (int stage = 0; stage < placement->stages(); ++stage) {
    const scheduler::StageCost cost = stage_cost(profile, plan.cuts[stage], plan.cuts[stage + 1]);
    bytes[placement->owner_of(stage)] += weight_versions * cost.weight_bytes + cost.optimizer_bytes;
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

// One group as deep as there are workers for, unless the request says otherwise.
Result<TrainPlan> lay_out(const scheduler::PlanOptions& wishes, const scheduler::ModelProfile& profile,
                          const Workers& workers, const Plan* previous) {
  const auto count = static_cast<int>(workers.size());
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
  plan.cuts = partition_blocks(profile, *placement, scheduler::Balance::kTime);
  seat_workers(plan, profile, workers, previous);
  const auto schedule = make_schedule(request_of(plan));
  if (!schedule) return schedule.error();
  const auto model = timing_model(profile, wishes.hardware, schedule->placement, plan.width, plan.cuts);
  const std::int64_t peak = largest_peak(*schedule, model);
  if (peak > wishes.hardware.memory_bytes) {
    return invalid_argument("the fullest worker needs " + gib_text(peak) + ", more than the " +
                                gib_text(wishes.hardware.memory_bytes) + " there are",
                            "a smaller --minibatch or --window, --recompute, or more --memory-gib");
  }
  std::vector<std::int64_t> free_bytes;
  for (const scheduler::DeviceUse& use : device_uses(*schedule, model)) {
    if (std::ssize(free_bytes) < plan.depth) free_bytes.push_back(wishes.hardware.memory_bytes - use.peak_bytes());
  }
  place_guards(plan, model.stages, workers, wishes.redundancy, free_bytes);
  return TrainPlan{std::move(plan), peak, 0, time_schedule(*schedule, model).makespan, "as asked for"};
}

Result<TrainPlan> make_plan(const TrainRequest& request, const scheduler::ModelProfile& profile, const Workers& workers,
                            const Plan* previous) {
  scheduler::PlanOptions wishes = request.plan;
  for (const ForcedShape& shape : request.shapes) {
    if (shape.workers != static_cast<int>(workers.size())) continue;
    wishes.depth = shape.depth;
    wishes.width = shape.width;
  }
  if (wishes.kind && is_only_compared(*wishes.kind)) return lay_out(wishes, profile, workers, previous);
  if (previous != nullptr) wishes.previous = *previous;
  auto report = plan(profile, workers, wishes);
  if (!report) return report.error();
  return TrainPlan{std::move(report->plan), report->chosen.peak_bytes, 0, report->chosen.window_time, report->reason};
}

}  // namespace

Result<TrainPlan> make_train_plan(const TrainRequest& request) {
  return make_train_plan(request, unnamed_workers(request.workers, request.workers), nullptr);
}

Result<TrainPlan> make_train_plan(const TrainRequest& request, const Workers& workers, const Plan* previous) {
  const scheduler::ModelProfile saved = train_profile(request);
  scheduler::ModelProfile profile = saved;
  if (request.options.stash) profile.weight_bytes *= 2;
  EVERSTEP_TRY(check(profile));
  EVERSTEP_TRY(check(request.plan.hardware));
  auto made = make_plan(request, profile, workers, previous);
  if (!made) return made;
  if (request.checkpoints) made->predicted_bytes += staging_bytes(made->plan, saved);
  made->copy_bytes = copy_bytes(made->plan, saved, request.plan.redundancy);
  return made;
}

scheduler::ModelProfile train_profile(const TrainRequest& request) {
  return profile_of(request.options.model, request.options.accumulation, kFlopsPerWorker);
}

Tick predicted_window(const TrainRequest& request, const Plan& plan, const Workers& workers) {
  return window_time(train_profile(request), request.plan.hardware, plan, workers);
}

trainer::TrainOptions train_options_of(const TrainRequest& request, const TrainPlan& plan, std::uint64_t lineage) {
  trainer::TrainOptions options = request.options;
  options.schedule = request_of(plan.plan);
  options.cuts = plan.plan.cuts;
  options.plan_text = plan_text(plan.plan);
  options.lineage = lineage;
  // A frame may have to wait for much of a window, on a machine much slower than the estimate. Hung processes are found
  // sooner than that: the supervisor listens for their signs of life.
  constexpr double kPatience = 20;
  const auto patience = std::chrono::milliseconds(std::llround(kPatience * 1e3 * to_seconds(plan.predicted_window)));
  options.peer_timeout = std::max(options.peer_timeout, patience);
  return options;
}

std::string describe_setup(const Plan& plan) { return plan_text(plan) + " everstep=" + std::string(kVersion); }

trainer::EmulatedTimes emulated_times(const Emulation& emulation, const Plan& plan) {
  const double share = static_cast<double>(plan.depth) / static_cast<double>(plan.cuts.size() - 1);
  return {milliseconds_of(emulation.forward_ms, share), milliseconds_of(emulation.backward_ms, share)};
}

trainer::EmulatedTimes emulated_part(const Emulation& emulation, const scheduler::ModelProfile& profile,
                                     int first_block, int end_block) {
  const auto cost = [&](int begin, int end) {
    const scheduler::StageCost stage = stage_cost(profile, begin, end);
    return static_cast<double>(stage.forward + stage.backward);
  };
  const double share = cost(first_block, end_block) / cost(0, static_cast<int>(profile.blocks.size()));
  return {milliseconds_of(emulation.forward_ms, share), milliseconds_of(emulation.backward_ms, share)};
}

}  // namespace everstep::launcher
