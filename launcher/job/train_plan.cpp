#include "launcher/job/train_plan.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/version.h"
#include "launcher/job/device_options.h"
#include "launcher/job/plan_request.h"
#include "scheduler/guards.h"
#include "scheduler/partition.h"
#include "scheduler/plan_text.h"
#include "scheduler/stragglers.h"
#include "scheduler/timeline.h"

namespace everstep::launcher {
namespace {

using scheduler::Placement;
using scheduler::Plan;
using Workers = std::vector<scheduler::WorkerInfo>;

// The copies that checkpoints are written from, on the worker with most of them: owners' state, and in an asynchronous
// pipeline the weights before.
std::int64_t staging_bytes(const Plan& plan, const scheduler::ModelProfile& profile) {
  const Placement placement = placement_of(plan);
  const int weight_versions = is_asynchronous(plan.kind) ? 2 : 1;
  std::vector<std::int64_t> bytes(plan.depth);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    const scheduler::StageCost cost = stage_cost(profile, plan.cuts[stage], plan.cuts[stage + 1]);
    bytes[placement.owner_of(stage)] += weight_versions * cost.weight_bytes + cost.optimizer_bytes;
  }
  return *std::max_element(bytes.begin(), bytes.end());
}

scheduler::PlanOptions wishes_for(const TrainRequest& request, const Workers& workers, const Plan* previous) {
  scheduler::PlanOptions wishes = request.plan;
  for (const ForcedShape& shape : request.shapes) {
    if (shape.workers != static_cast<int>(workers.size())) continue;
    wishes.depth = shape.depth;
    wishes.width = shape.width;
  }
  if (previous != nullptr) wishes.previous = *previous;
  return wishes;
}

PlanRequest planned(const TrainRequest& request) {
  return {request.options.model, request.options.accumulation, request.options.stash,
          request.emulation,     request.emulated_link,        request.plan};
}

double flops_per_second(const TrainRequest& request) {
  return request.device == kHostDevice ? cpu_device(0).flops_per_second : gpu_device().flops_per_second;
}

}  // namespace

Result<TrainPlan> make_train_plan(const TrainRequest& request) {
  return make_train_plan(request, unnamed_workers(request.workers, request.workers), nullptr);
}

Result<TrainPlan> make_train_plan(const TrainRequest& request, const Workers& workers, const Plan* previous) {
  auto report = report_plan(planned_profile(planned(request), flops_per_second(request)), workers,
                            wishes_for(request, workers, previous));
  if (!report) return report.error();
  TrainPlan made{std::move(report->plan), report->chosen.peak_bytes, 0, report->chosen.window_time, report->reason};
  const scheduler::ModelProfile saved = train_profile(request);
  if (request.checkpoints) made.predicted_bytes += staging_bytes(made.plan, saved);
  made.copy_bytes = copy_bytes(made.plan, saved, request.plan.redundancy);
  return made;
}

scheduler::ModelProfile train_profile(const TrainRequest& request) {
  return profile_of(request.options.model, request.options.accumulation, flops_per_second(request));
}

Tick predicted_window(const TrainRequest& request, const Plan& plan, const Workers& workers) {
  return window_time(emulated_profile(train_profile(request), request.emulation), request.plan.hardware, plan, workers);
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

}  // namespace everstep::launcher
