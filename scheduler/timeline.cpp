#include "scheduler/timeline.h"

#include <algorithm>
#include <cstdlib>

namespace everstep::scheduler {
namespace {

struct ModelCosts {
  const TimingModel& model;

  Tick compute(int, const Op& op) const {
    const StageCost& stage = model.stages[op.stage];
    return op.kind == OpKind::kForward ? stage.forward : stage.backward;
  }
  MessageCost message(int, int, const Op& op) const {
    // A gradient has the size of the activation it belongs to: the output of the stage before.
    const int boundary = op.kind == OpKind::kForward ? op.stage : op.stage - 1;
    return {model.stages[boundary].transfer, model.latency};
  }
  Tick reduce(int stage) const { return model.stages[stage].reduce; }
  Tick update() const { return model.update; }
};

DeviceUse use_of(const Schedule& schedule, int worker, const std::vector<OpSpan>& spans, const TimingModel& model) {
  DeviceUse use;
  std::int64_t activations = 0;
  const std::vector<Op>& ops = schedule.workers[worker];
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_compute(ops[i])) continue;
    use.busy += spans[i].end - spans[i].begin;
    const std::int64_t bytes = model.stages[ops[i].stage].activation_bytes;
    activations += ops[i].kind == OpKind::kForward ? bytes : -bytes;
    use.peak_activation_bytes = std::max(use.peak_activation_bytes, activations);
  }
  use.resident_bytes =
      resident_bytes(schedule.placement, schedule.request.kind, schedule.device_of(worker), model.stages);
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

std::int64_t resident_bytes(const Placement& placement, ScheduleKind kind, int device,
                            const std::vector<StageCost>& stages) {
  std::int64_t bytes = 0;
  for (const int stage : placement.stages_on(device)) {
    const StageCost& cost = stages[stage];
    const bool last = stage == placement.stages() - 1;
    const int weight_versions = kind == ScheduleKind::kPipedream2bw ? 2 : 1;
    const int gradient_buffers = kind == ScheduleKind::kAmdp && last ? 2 : 1;
    bytes += weight_versions * cost.weight_bytes + gradient_buffers * cost.gradient_bytes;
    if (placement.owner_of(stage) == device) bytes += cost.optimizer_bytes;
  }
  return bytes;
}

Timeline time_schedule(const Schedule& schedule, const TimingModel& model) {
  EVERSTEP_CHECK(std::ssize(model.stages) == schedule.placement.stages(), "one cost per stage");
  Execution execution = execute(schedule, ModelCosts{model});
  EVERSTEP_CHECK(!execution.hang, "timing a schedule that was not validated");
  Timeline timeline;
  timeline.spans = std::move(execution.spans);
  for (std::size_t worker = 0; worker < timeline.spans.size(); ++worker) {
    const std::vector<OpSpan>& spans = timeline.spans[worker];
    if (!spans.empty()) timeline.makespan = std::max(timeline.makespan, spans.back().end);
    timeline.workers.push_back(use_of(schedule, static_cast<int>(worker), spans, model));
  }
  return timeline;
}

Result<SteadyState> steady_state(ScheduleRequest request, const TimingModel& model) {
  // Updates are where all meet, so the second full window between two of them already repeats for ever; the first has
  // the filling in it and the last the draining. A synchronous window stands alone.
  request.windows = is_asynchronous(request.kind) ? 4 : 1;
  request.first_window = 0;
  request.first_minibatch = 0;
  request.stop_after_rounds.reset();
  request.flush_after.clear();
  const auto schedule = make_schedule(request);
  if (!schedule) return schedule.error();
  const Timeline timeline = time_schedule(*schedule, model);
  SteadyState steady;
  steady.window = is_asynchronous(request.kind)
                      ? end_of_update(*schedule, timeline, 2) - end_of_update(*schedule, timeline, 1)
                      : timeline.makespan;
  Tick busy = 0;
  for (const DeviceUse& use : timeline.workers) busy += use.busy;
  steady.busy = static_cast<double>(busy) / static_cast<double>(request.windows) /
                (static_cast<double>(steady.window) * static_cast<double>(timeline.workers.size()));
  return steady;
}

}  // namespace everstep::scheduler
