#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/tick.h"
#include "scheduler/schedule.h"

namespace everstep::scheduler {

// When an op ran. For an update `begin` is when all had arrived, so waiting is not part of it.
struct OpSpan {
  Tick begin = 0;
  Tick end = 0;

  bool operator==(const OpSpan&) const = default;
};

// An op that can never run because of the order of the lists, and what it waits for.
struct Hang {
  int worker = 0;
  Op op;
  std::string reason;
};

// The outcome of playing a schedule: the spans are parallel to Schedule::workers, shorter where a worker got stuck.
struct Execution {
  std::vector<std::vector<OpSpan>> spans;
  std::optional<Hang> hang;
};

// A directed link between two workers carries one tensor after the other: `transfer` occupies it, `latency` does not.
// It delivers in order as long as all its tensors have the same latency.
struct MessageCost {
  Tick transfer = 0;
  Tick latency = 0;
};

// Numbers the forwards and backwards of a schedule densely, so that tables replace maps: key = minibatch * stages +
// stage, minibatches counted through all slices and groups.
class ComputeKeys {
 public:
  explicit ComputeKeys(const Schedule& schedule);

  std::size_t size() const { return size_; }
  std::size_t key(int group, const Op& op) const {
    const auto slice = static_cast<std::size_t>(op.window - first_window_);
    const std::size_t minibatch = slice_begin_[slice] + (static_cast<std::size_t>(op.round) * width_ + group) * depth_ +
                                  static_cast<std::size_t>(op.minibatch);
    return minibatch * stages_ + static_cast<std::size_t>(op.stage);
  }

  // Whether window, round, minibatch and stage are in the range of the tables.
  bool contains(int group, const Op& op) const;

 private:
  std::int64_t first_window_;
  std::size_t depth_, width_, stages_;
  std::vector<std::size_t> slice_begin_;
  std::size_t size_ = 0;
};

// Plays the lists as real workers would run them: in order, blocking for inputs, never for sends. Since the lists are
// static, whether it completes does not depend on the costs; only the times do. `Costs` has
//   Tick compute(int worker, const Op&);                    forward or backward
//   MessageCost message(int from, int to, const Op&);       of the tensor that op produces
//   Tick reduce(int stage);                                 a mirror group's reduces run one after the other
//   Tick update();
template <typename Costs>
class Player {
 public:
  Player(const Schedule& schedule, Costs& costs)
      : schedule_(schedule),
        costs_(costs),
        keys_(schedule),
        forward_(keys_.size()),
        backward_(keys_.size()),
        workers_(schedule.workers.size()),
        meetings_(schedule.slices.size() * meetings_per_window()),
        reduce_started_(schedule.slices.size() * schedule.placement.stages(), 0) {
    result_.spans.resize(workers_.size());
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      result_.spans[worker].reserve(schedule.workers[worker].size());
      runnable_.push_back(static_cast<int>(worker));
    }
  }

  Execution run() {
    while (!runnable_.empty()) {
      const int worker = runnable_.back();
      runnable_.pop_back();
      while (result_.spans[worker].size() < schedule_.workers[worker].size() && advance(worker)) {
      }
    }
    explain_hang();
    return std::move(result_);
  }

 private:
  // A tensor on its way between two ops: when it is there, and who sleeps until then.
  struct Arrival {
    Tick at = -1;
    int waiter = -1;
  };
  struct Worker {
    Tick now = 0;
    Tick link_free[2] = {0, 0};  // to the worker after and before it on the ring
  };
  struct Meeting {
    std::vector<int> arrived;
    Tick begin = 0;
  };

  bool updates_are_local() const { return schedule_.request.kind == ScheduleKind::kPipedream2bw; }
  std::size_t meetings_per_window() const { return updates_are_local() ? schedule_.depth() : 1; }
  std::size_t slice_index(const Op& op) const { return op.window - schedule_.request.first_window; }

  // Runs the worker's next op if its input is there; else notes who waits for what.
  bool advance(int worker) {
    const Op& op = schedule_.workers[worker][result_.spans[worker].size()];
    switch (op.kind) {
      case OpKind::kForward:
      case OpKind::kBackward:
        return compute(worker, op);
      case OpKind::kStartReduce: {
        Tick& started = reduce_started_[slice_index(op) * schedule_.placement.stages() + op.stage];
        started = std::max(started, workers_[worker].now);
        break;
      }
      case OpKind::kBackwardWeights:
      case OpKind::kCapture:
        break;
      case OpKind::kUpdate:
        meet(worker, op);
        return false;
    }
    const Tick now = workers_[worker].now;
    result_.spans[worker].push_back({now, now});
    return true;
  }

  Arrival* input_of(int group, const Op& op) {
    const std::size_t key = keys_.key(group, op);
    if (op.kind == OpKind::kForward) return op.stage == 0 ? nullptr : &forward_[key - 1];
    return op.stage == schedule_.placement.stages() - 1 ? &forward_[key] : &backward_[key + 1];
  }

  bool compute(int worker, const Op& op) {
    const int group = schedule_.group_of(worker);
    Worker& self = workers_[worker];
    if (Arrival* input = input_of(group, op)) {
      if (input->at < 0) {
        input->waiter = worker;
        return false;
      }
      self.now = std::max(self.now, input->at);
    }
    const Tick begin = self.now;
    self.now += costs_.compute(worker, op);
    result_.spans[worker].push_back({begin, self.now});
    deliver(worker, group, op);
    return true;
  }

  void deliver(int worker, int group, const Op& op) {
    const bool forward = op.kind == OpKind::kForward;
    const int next_stage = forward ? op.stage + 1 : op.stage - 1;
    Arrival& arrival = forward ? forward_[keys_.key(group, op)] : backward_[keys_.key(group, op)];
    arrival.at = workers_[worker].now;
    if (next_stage >= 0 && next_stage < schedule_.placement.stages()) {
      const int to = schedule_.worker_of(group, schedule_.pipeline_of(op), next_stage);
      if (to != worker) arrival.at = send(worker, to, op);
    }
    if (arrival.waiter >= 0) runnable_.push_back(arrival.waiter);
  }

  Tick send(int from, int to, const Op& op) {
    const bool up = (to - from + schedule_.depth()) % schedule_.depth() == 1;
    Tick& link_free = workers_[from].link_free[up ? 0 : 1];
    const MessageCost cost = costs_.message(from, to, op);
    link_free = std::max(link_free, workers_[from].now) + cost.transfer;
    return link_free + cost.latency;
  }

  // All workers meet at an update (PipeDream-2BW: the replicas of a device only); the last to arrive releases them.
  void meet(int worker, const Op& op) {
    const int scope = updates_are_local() ? schedule_.device_of(worker) : 0;
    Meeting& meeting = meetings_[slice_index(op) * meetings_per_window() + scope];
    meeting.arrived.push_back(worker);
    meeting.begin = std::max(meeting.begin, workers_[worker].now);
    if (meeting.arrived.size() * meetings_per_window() < workers_.size()) return;
    meeting.begin = std::max(meeting.begin, reduces_done(op, scope));
    const Tick end = meeting.begin + costs_.update();
    for (const int member : meeting.arrived) {
      workers_[member].now = end;
      result_.spans[member].push_back({meeting.begin, end});
      runnable_.push_back(member);
    }
  }

  Tick reduces_done(const Op& op, int scope) {
    const Placement& placement = schedule_.placement;
    std::vector<Tick> group_done(placement.depth(), 0);
    Tick done = 0;
    for (int stage = placement.stages() - 1; stage >= 0; --stage) {
      const int owner = placement.owner_of(stage);
      if (updates_are_local() && owner != scope) continue;
      Tick& group = group_done[placement.mirror_group_of(owner)];
      group = std::max(group, reduce_started_[slice_index(op) * placement.stages() + stage]) + costs_.reduce(stage);
      done = std::max(done, group);
    }
    return done;
  }

  void explain_hang() {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      const std::vector<Op>& ops = schedule_.workers[worker];
      const std::size_t next = result_.spans[worker].size();
      if (next == ops.size()) continue;
      const Op& op = ops[next];
      result_.hang = Hang{static_cast<int>(worker), op, waits_for(static_cast<int>(worker), op)};
      // A worker stuck at a tensor explains more than one stuck at an update that others never reach.
      if (op.kind != OpKind::kUpdate) return;
    }
  }

  std::string waits_for(int worker, const Op& op) const {
    if (op.kind == OpKind::kUpdate) return "for workers that never reach this update";
    const bool forward = op.kind == OpKind::kForward;
    Op producer = op;
    producer.stage += forward ? -1 : 1;
    if (!forward && producer.stage == schedule_.placement.stages())
      producer = {OpKind::kForward, op.stage, op.minibatch, op.round, op.window};
    const int from = schedule_.worker_of(schedule_.group_of(worker), schedule_.pipeline_of(op), producer.stage);
    const std::size_t stuck_at = result_.spans[from].size();
    std::string reason = "for " + to_string(producer) + " of worker " + std::to_string(from);
    if (stuck_at == schedule_.workers[from].size()) return reason + ", which never runs it";
    return reason + ", which waits at " + to_string(schedule_.workers[from][stuck_at]);
  }

  const Schedule& schedule_;
  Costs& costs_;
  ComputeKeys keys_;
  std::vector<Arrival> forward_;
  std::vector<Arrival> backward_;
  std::vector<Worker> workers_;
  std::vector<Meeting> meetings_;
  std::vector<Tick> reduce_started_;
  std::vector<int> runnable_;
  Execution result_;
};

template <typename Costs>
Execution execute(const Schedule& schedule, Costs costs) {
  return Player<Costs>(schedule, costs).run();
}

}  // namespace everstep::scheduler
