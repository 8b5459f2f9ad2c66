#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/tick.h"
#include "scheduler/schedule.h"
#include "scheduler/trial_steps.h"

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

// An op that has no place in the lists, and when it ran.
struct FloatingOp {
  Op op;
  OpSpan span;
  int place = 0;  // so many ops of the worker's list came before it

  bool operator==(const FloatingOp&) const = default;
};

// The outcome of playing a schedule: the spans are parallel to Schedule::workers, shorter where a worker got stuck.
struct Execution {
  std::vector<std::vector<OpSpan>> spans;
  std::vector<std::vector<FloatingOp>> weights;  // kBackwardWeights by worker, in the order in which they ran
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
    const std::size_t minibatch = slice_begin_[slice] +
                                  (static_cast<std::size_t>(op.round) * width_ + group) * round_size_ +
                                  static_cast<std::size_t>(op.minibatch);
    return minibatch * stages_ + static_cast<std::size_t>(op.stage);
  }

  // Whether window, round, minibatch and stage are in the range of the tables.
  bool contains(int group, const Op& op) const;

 private:
  std::int64_t first_window_;
  std::size_t round_size_, width_, stages_;
  std::vector<std::size_t> slice_begin_;
  std::size_t size_ = 0;
};

// Plays the lists as real workers would run them: in order, blocking for inputs, never for sends. Since the lists are
// static, whether it completes does not depend on the costs; only the times do.
//
// Where backwards are split, each leaves a kBackwardWeights behind. A worker runs the oldest one that it has left
//  - when the input of its next op has not come, or the others have not come to an update;
//  - when most_pending_weights() are left, before the next forward, backward or update;
//  - when a buffer is closed, until it is complete: before its sum is reduced or copied; and at the list's end.
// So when it runs depends on the costs, but the order in which a chunk adds up its gradients never does.
//
// A trial step waits until all workers of its mirror group, in all groups, have made their copies, and until the other
// owners that take part in it have come to theirs: those of the same stages in the other groups, and for the first and
// the last stage those of both, which may share a parameter. A forward or backward that reads provisional weights waits
// for the step of their owners. Really a worker does its part as soon as it can.
//
// `Costs` has
//   Tick compute(int worker, const Op&);                    forward, backward or kBackwardWeights
//   MessageCost message(int from, int to, const Op&);       of the tensor that op produces
//   Tick reduce(int stage);                                 a mirror group's reduces run one after the other, and
//                                                           behind what its provisional step sends over the same links
//   Tick update();
//   Tick provisional();                                     from the last copy to provisional weights on all replicas
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
        reduce_started_(schedule.slices.size() * schedule.placement.stages(), 0),
        steps_(schedule) {
    result_.spans.resize(workers_.size());
    result_.weights.resize(workers_.size());
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
      if (result_.spans[worker].size() == schedule_.workers[worker].size()) run_weights_until(worker, kForEver);
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
    std::vector<Op> pending;     // kBackwardWeights, the oldest first
    std::int64_t updates = 0;    // made here, in this schedule
  };
  struct Meeting {
    std::vector<int> arrived;
    Tick begin = 0;
  };

  bool updates_are_local() const { return schedule_.request.kind == ScheduleKind::kPipedream2bw; }
  std::size_t meetings_per_window() const { return updates_are_local() ? schedule_.depth() : 1; }
  std::size_t slice_index(const Op& op) const { return op.window - schedule_.request.first_window; }

  void run_oldest_weights(int worker) {
    Worker& self = workers_[worker];
    const Op op = self.pending.front();
    self.pending.erase(self.pending.begin());
    const Tick begin = self.now;
    self.now += costs_.compute(worker, op);
    result_.weights[worker].push_back({op, {begin, self.now}, static_cast<int>(result_.spans[worker].size())});
  }

  // Fills the time until then.
  void run_weights_until(int worker, Tick then) {
    while (!workers_[worker].pending.empty() && workers_[worker].now < then) run_oldest_weights(worker);
  }

  // What must be done before the worker may turn to the op.
  void run_due_weights(int worker, const Op& op) {
    const std::vector<Op>& pending = workers_[worker].pending;
    const auto is_due = [&] {
      if (!closes_sum(op)) return pending.size() >= most_pending_weights(schedule_.depth());
      return std::any_of(pending.begin(), pending.end(),
                         [&](const Op& left) { return left.window == op.window && left.stage == op.stage; });
    };
    while (is_due()) run_oldest_weights(worker);
  }

  // Runs the worker's next op if its input is there; else notes who waits for what.
  bool advance(int worker) {
    const Op& op = schedule_.workers[worker][result_.spans[worker].size()];
    run_due_weights(worker, op);
    switch (op.kind) {
      case OpKind::kForward:
      case OpKind::kBackward:
        return compute(worker, op);
      case OpKind::kStartReduce: {
        Tick& started = reduce_started_[slice_index(op) * schedule_.placement.stages() + op.stage];
        started = std::max(started, workers_[worker].now);
        break;
      }
      case OpKind::kCapture:
        break;
      case OpKind::kProvisional:
        steps_.copied(worker, op.window, workers_[worker].now);
        wake_those_who_wait_for_steps();
        break;
      case OpKind::kTrialStep:
        if (!take_step(worker, op)) return false;
        break;
      case OpKind::kUpdate:
        meet(worker, op);
        return false;
      case OpKind::kBackwardWeights:
        EVERSTEP_CHECK(false, "an op that has no place in a list");
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

  void wake_those_who_wait_for_steps() {
    runnable_.insert(runnable_.end(), waiting_for_steps_.begin(), waiting_for_steps_.end());
    waiting_for_steps_.clear();
  }

  // Whether the worker's own stages have their weights; time passes until then.
  bool take_step(int worker, const Op& op) {
    if (steps_.come_to(worker, op.window)) wake_those_who_wait_for_steps();
    const int device = schedule_.device_of(worker);
    for (const int stage : schedule_.placement.stages_on(device)) {
      const bool owned = schedule_.placement.owner_of(stage) == device;
      if (owned && !wait_for_weights(worker, op.window, stage)) return false;
    }
    return true;
  }

  bool wait_for_weights(int worker, std::int64_t window, int stage) {
    const auto complete = steps_.complete_at(window, stage);
    if (!complete) {
      waiting_for_steps_.push_back(worker);
      return false;
    }
    const Tick at = *complete + costs_.provisional();
    run_weights_until(worker, at);
    workers_[worker].now = std::max(workers_[worker].now, at);
    return true;
  }

  // Whether the weights that the op reads are there, for which time passes.
  bool has_weights(int worker, const Op& op) {
    if (!schedule_.reads_provisional(op, {schedule_.request.first_window + workers_[worker].updates})) return true;
    return wait_for_weights(worker, op.window - 1, op.stage);
  }

  bool compute(int worker, const Op& op) {
    const int group = schedule_.group_of(worker);
    Worker& self = workers_[worker];
    if (!has_weights(worker, op)) return false;
    if (Arrival* input = input_of(group, op)) {
      if (input->at < 0) {
        input->waiter = worker;
        return false;
      }
      run_weights_until(worker, input->at);
      self.now = std::max(self.now, input->at);
    }
    const Tick begin = self.now;
    self.now += costs_.compute(worker, op);
    result_.spans[worker].push_back({begin, self.now});
    if (splits_ && op.kind == OpKind::kBackward) self.pending.push_back(weights_of(op));
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
    for (const int member : meeting.arrived) {
      run_weights_until(member, meeting.begin);
      const Tick begin = std::max(meeting.begin, workers_[member].now);
      workers_[member].now = begin + costs_.update();
      result_.spans[member].push_back({begin, workers_[member].now});
      ++workers_[member].updates;
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
      const Tick started = reduce_started_[slice_index(op) * placement.stages() + stage];
      group = std::max({group, started, step_done(op.window, stage)}) + costs_.reduce(stage);
      done = std::max(done, group);
    }
    return done;
  }

  // When the links have carried what the window's provisional step sums and sends for the stage.
  Tick step_done(std::int64_t window, int stage) const {
    if (!schedule_.provisional_round(window)) return 0;
    const auto copied = steps_.complete_at(window, stage);
    return copied ? *copied + costs_.provisional() : 0;
  }

  void explain_hang() {
    for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
      const std::vector<Op>& ops = schedule_.workers[worker];
      const std::size_t next = result_.spans[worker].size();
      if (next == ops.size()) continue;
      const Op& op = ops[next];
      // A worker stuck at weights explains more than one stuck at a tensor, and that one more than one stuck at an
      // update that others never reach.
      const bool explains_more = !result_.hang || result_.hang->op.kind == OpKind::kUpdate;
      const bool at_weights = waits_for_step(static_cast<int>(worker));
      if (!explains_more && !at_weights) continue;
      result_.hang = Hang{static_cast<int>(worker), op, waits_for(static_cast<int>(worker), op)};
      if (at_weights) return;
    }
  }

  bool waits_for_step(int worker) const {
    return std::find(waiting_for_steps_.begin(), waiting_for_steps_.end(), worker) != waiting_for_steps_.end();
  }

  std::string waits_for(int worker, const Op& op) const {
    if (op.kind == OpKind::kUpdate) return "for workers that never reach this update";
    if (waits_for_step(worker)) return "for provisional weights that others never make";
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

  static constexpr Tick kForEver = std::numeric_limits<Tick>::max();

  const Schedule& schedule_;
  Costs& costs_;
  const bool splits_ = splits_backwards(schedule_.request.kind);
  ComputeKeys keys_;
  std::vector<Arrival> forward_;
  std::vector<Arrival> backward_;
  std::vector<Worker> workers_;
  std::vector<Meeting> meetings_;
  std::vector<Tick> reduce_started_;
  TrialSteps steps_;
  std::vector<int> waiting_for_steps_;
  std::vector<int> runnable_;
  Execution result_;
};

template <typename Costs>
Execution execute(const Schedule& schedule, Costs costs) {
  return Player<Costs>(schedule, costs).run();
}

}  // namespace everstep::scheduler
