#include "scheduler/timeline.h"

#include <algorithm>

namespace everstep::scheduler {
namespace {

struct ModelCosts {
  const Schedule& schedule;
  const TimingModel& model;

  Tick compute(int worker, const Op& op) const {
    const StageCost& stage = model.stages[op.stage];
    const Tick usual = op.kind == OpKind::kForward ? stage.forward : stage.backward;
    return slowed(usual, model.slowness, schedule.device_of(worker));
  }
  MessageCost message(int, int, const Op& op) const {
    // A gradient has the size of the activation it belongs to: the output of the stage before.
    const int boundary = op.kind == OpKind::kForward ? op.stage : op.stage - 1;
    return {model.stages[boundary].transfer, model.latency};
  }
  Tick reduce(int stage) const { return model.stages[stage].reduce; }
  Tick update() const { return model.update; }
};

// Weights, gradients (two buffers where two windows meet in one chunk) and, for its owner, optimizer state.
std::int64_t resident_bytes(const Schedule& schedule, int device, const std::vector<StageCost>& stages) {
  const Placement& placement = schedule.placement;
  const int weight_versions = schedule.request.kind == ScheduleKind::kPipedream2bw ? 2 : 1;
  std::int64_t bytes = 0;
  for (const int stage : placement.stages_on(device)) {
    const StageCost& cost = stages[stage];
    bytes += weight_versions * cost.weight_bytes + (schedule.two_windows_meet(stage) ? 2 : 1) * cost.gradient_bytes;
    if (placement.owner_of(stage) == device) bytes += cost.optimizer_bytes;
  }
  return bytes;
}

DeviceUse use_of(const Schedule& schedule, int worker, const ModelCosts& costs) {
  DeviceUse use;
  std::int64_t activations = 0;
  for (const Op& op : schedule.workers[worker]) {
    if (!is_compute(op)) continue;
    use.busy += costs.compute(worker, op);
    const StageCost& stage = costs.model.stages[op.stage];
    if (op.kind == OpKind::kForward) activations += stage.activation_bytes;
    use.peak_activation_bytes = std::max(use.peak_activation_bytes, activations);
    use.peak_computing_bytes = std::max(use.peak_computing_bytes, activations + stage.working_bytes);
    if (op.kind == OpKind::kBackward) activations -= stage.activation_bytes;
  }
  use.resident_bytes = resident_bytes(schedule, schedule.device_of(worker), costs.model.stages);
  return use;
}

Tick end_of_update(const Schedule& schedule, const Timeline& timeline, std::int64_t window) {
  const std::vector<Op>& ops = schedule.workers.front();
  const auto update = std::find(ops.begin(), ops.end(), update_of(window));
  EVERSTEP_CHECK(update != ops.end(), "a complete window without an update");
  return timeline.spans.front()[update - ops.begin()].end;
}

}  // namespace

TimingModel TimingModel::uniform(int stages, Tick forward, Tick backward, Tick update) {
  TimingModel model;
  StageCost cost;
  cost.forward = forward;
  cost.backward = backward;
  model.stages.assign(stages, cost);
  model.update = update;
  return model;
}

std::vector<DeviceUse> device_uses(const Schedule& schedule, const TimingModel& model) {
  std::vector<DeviceUse> uses;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    uses.push_back(use_of(schedule, worker, ModelCosts{schedule, model}));
  }
  return uses;
}

Timeline time_schedule(const Schedule& schedule, const TimingModel& model) {
  EVERSTEP_CHECK(std::ssize(model.stages) == schedule.placement.stages(), "one cost per stage");
  EVERSTEP_CHECK(model.slowness.empty() || std::ssize(model.slowness) == schedule.depth(), "one slowness per device");
  Execution execution = execute(schedule, ModelCosts{schedule, model});
  EVERSTEP_CHECK(!execution.hang, "timing a schedule that was not validated");
  Timeline timeline;
  timeline.spans = std::move(execution.spans);
  for (const std::vector<OpSpan>& spans : timeline.spans) {
    if (!spans.empty()) timeline.makespan = std::max(timeline.makespan, spans.back().end);
  }
  timeline.workers = device_uses(schedule, model);
  return timeline;
}

Result<SteadyState> steady_state(ScheduleRequest request, const TimingModel& model) {
  // The first window has the filling in it and the last the draining. Where all meet at an update, the second one
  // already repeats for ever; updates that are local to a stage let the pipeline become steady more slowly. A
  // synchronous window stands alone.
  const int steady_from = request.kind == ScheduleKind::kPipedream2bw ? 6 : 2;
  request.windows = is_asynchronous(request.kind) ? steady_from + 2 : 1;
  request.first_window = 0;
  request.first_minibatch = 0;
  request.stop_after_rounds.reset();
  request.flush_after.clear();
  const auto schedule = make_schedule(request);
  if (!schedule) return schedule.error();
  const Timeline timeline = time_schedule(*schedule, model);
  SteadyState steady;
  steady.window = is_asynchronous(request.kind) ? end_of_update(*schedule, timeline, steady_from) -
                                                      end_of_update(*schedule, timeline, steady_from - 1)
                                                : timeline.makespan;
  for (const DeviceUse& use : timeline.workers) steady.busy_ticks += use.busy;
  steady.busy_ticks /= request.windows;
  steady.devices = static_cast<int>(timeline.workers.size());
  return steady;
}

}  // namespace everstep::scheduler
