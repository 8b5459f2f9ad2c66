#include "scheduler/timeline.h"

#include <algorithm>

namespace everstep::scheduler {
namespace {

struct ModelCosts {
  const Schedule& schedule;
  const TimingModel& model;

  Tick compute(int worker, const Op& op) const {
    const StageCost& stage = model.stages[op.stage];
    return slowed(usual(stage, op.kind), model.slowness, schedule.device_of(worker));
  }
  Tick usual(const StageCost& stage, OpKind kind) const {
    if (kind == OpKind::kForward) return stage.forward;
    if (!splits_backwards(schedule.request.kind)) return stage.backward;
    return kind == OpKind::kBackwardWeights ? stage.weights : stage.backward - stage.weights;
  }
  MessageCost message(int, int, const Op& op) const {
    // A gradient has the size of the activation it belongs to: the output of the stage before.
    const int boundary = op.kind == OpKind::kForward ? op.stage : op.stage - 1;
    return {model.stages[boundary].transfer, model.latency};
  }
  Tick reduce(int stage) const { return model.stages[stage].reduce; }
  Tick update() const { return model.update; }
  // As an update does: a mirror group sums its stages one after the other.
  Tick provisional() const {
    const Placement& placement = schedule.placement;
    std::vector<Tick> by_group(placement.depth(), 0);
    for (int stage = 0; stage < placement.stages(); ++stage) {
      by_group[placement.mirror_group_of(placement.owner_of(stage))] += model.stages[stage].reduce;
    }
    return *std::max_element(by_group.begin(), by_group.end()) + model.update;
  }
};

// Weights, gradients (two buffers where two windows meet in one chunk) and, for its owner, optimizer state. A
// provisional step needs a second buffer for the weights that it makes, and one for the sum that it makes them of.
std::int64_t resident_bytes(const Schedule& schedule, int device, const std::vector<StageCost>& stages) {
  const Placement& placement = schedule.placement;
  const int steps = schedule.request.provisional > 0 ? 1 : 0;
  const int weight_versions = schedule.request.kind == ScheduleKind::kPipedream2bw ? 2 : 1 + steps;
  std::int64_t bytes = 0;
  for (const int stage : placement.stages_on(device)) {
    const StageCost& cost = stages[stage];
    const int sums = (schedule.two_windows_meet(device, stage) ? 2 : 1) + steps;
    bytes += weight_versions * cost.weight_bytes + sums * cost.gradient_bytes;
    if (placement.owner_of(stage) == device) bytes += cost.optimizer_bytes;
  }
  return bytes;
}

// What a worker keeps between forwards and backwards. It splits the backwards of every kind: one may still have its
// other half to do when the next op begins (see most_pending_weights()), unless its buffer was closed in between.
class KeptActivations {
 public:
  KeptActivations(const Schedule& schedule, const std::vector<StageCost>& stages)
      : puts_off_(most_pending_weights(schedule.depth()) > 1), stages_(stages) {}

  void step(const Op& op) {
    const StageCost& stage = stages_[op.stage];
    if (op.kind == OpKind::kForward) in_flight_ += stage.activation_bytes;
    peak_ = std::max(peak_, in_flight_ + left_bytes_);
    if (is_compute(op)) computing_peak_ = std::max(computing_peak_, in_flight_ + left_bytes_ + stage.working_bytes);
    if (op.kind == OpKind::kBackward) {
      in_flight_ -= stage.activation_bytes;
      left_ = op;
      left_bytes_ = puts_off_ ? stage.weights_kept_bytes : 0;
    }
    if (closes_sum(op) && op.stage == left_.stage && op.window == left_.window) left_bytes_ = 0;
  }

  std::int64_t peak() const { return peak_; }
  std::int64_t computing_peak() const { return computing_peak_; }  // with what the op at hand needs besides

 private:
  bool puts_off_;
  const std::vector<StageCost>& stages_;
  std::int64_t in_flight_ = 0;
  Op left_;
  std::int64_t left_bytes_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t computing_peak_ = 0;
};

DeviceUse use_of(const Schedule& schedule, int worker, const ModelCosts& costs) {
  DeviceUse use;
  KeptActivations kept(schedule, costs.model.stages);
  for (const Op& op : schedule.workers[worker]) {
    kept.step(op);
    if (!is_compute(op)) continue;
    use.busy += costs.compute(worker, op);
    const bool split = splits_backwards(schedule.request.kind) && op.kind == OpKind::kBackward;
    if (split) use.busy += costs.compute(worker, weights_of(op));
  }
  use.peak_activation_bytes = kept.peak();
  use.peak_computing_bytes = kept.computing_peak();
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
  cost.weights = backward / 2;
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
  timeline.weights = std::move(execution.weights);
  for (const std::vector<FloatingOp>& weights : timeline.weights) {
    if (!weights.empty()) timeline.makespan = std::max(timeline.makespan, weights.back().span.end);
  }
  timeline.workers = device_uses(schedule, model);
  return timeline;
}

Result<SteadyState> steady_state(ScheduleRequest request, const TimingModel& model) {
  // The first window has the filling in it and the last the draining. Where all meet at an update, the second one
  // already repeats for ever; updates that are local to a stage let the pipeline become steady more slowly. A
  // synchronous window stands alone. Where work floats, two windows may take turns: their average counts.
  const int steady_from = request.kind == ScheduleKind::kPipedream2bw ? 6 : 2;
  const int measured = splits_backwards(request.kind) ? 2 : 1;
  request.windows = is_asynchronous(request.kind) ? steady_from + measured + 1 : 1;
  request.first_window = 0;
  request.first_minibatch = 0;
  request.stop_after_rounds.reset();
  request.flush_after.clear();
  const auto schedule = make_schedule(request);
  if (!schedule) return schedule.error();
  const Timeline timeline = time_schedule(*schedule, model);
  SteadyState steady;
  steady.window = is_asynchronous(request.kind) ? (end_of_update(*schedule, timeline, steady_from - 1 + measured) -
                                                   end_of_update(*schedule, timeline, steady_from - 1)) /
                                                      measured
                                                : timeline.makespan;
  for (const DeviceUse& use : timeline.workers) steady.busy_ticks += use.busy;
  steady.busy_ticks /= request.windows;
  steady.devices = static_cast<int>(timeline.workers.size());
  return steady;
}

}  // namespace everstep::scheduler
