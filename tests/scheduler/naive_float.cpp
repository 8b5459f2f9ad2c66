#include "tests/scheduler/naive_float.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/scheduler/naive_shape.h"

namespace everstep::scheduler {
namespace {

using Name = std::pair<int, std::string>;  // group, and an op by its text

class TickByTick {
 public:
  TickByTick(const Schedule& schedule, const SeededCosts& costs)
      : schedule_(schedule), request_(schedule.request), costs_(costs), workers_(schedule.workers.size()) {
    times_.spans.resize(workers_.size());
    times_.weights.resize(workers_.size());
  }

  NaiveTimes run() {
    for (; !all_done(); ++now_) {
      for (int worker = 0; worker < count(); ++worker) complete(worker);
      // Somebody else may come to an update in this very tick, so nobody there takes up other work too soon.
      for (const bool fills_the_wait : {false, true}) {
        for (bool changed = true; changed;) {
          changed = false;
          for (int worker = 0; worker < count(); ++worker) changed = decide(worker, fills_the_wait) || changed;
        }
      }
    }
    return std::move(times_);
  }

 private:
  struct Worker {
    std::optional<Op> running;
    Tick begin = 0;
    Tick end = 0;
    bool at_update = false;
    std::deque<Op> left;  // gradients of weights
  };

  int count() const { return static_cast<int>(workers_.size()); }
  const Op* next(int worker) const {
    const std::size_t done = times_.spans[worker].size();
    return done < schedule_.workers[worker].size() ? &schedule_.workers[worker][done] : nullptr;
  }
  bool all_done() const {
    for (int worker = 0; worker < count(); ++worker) {
      if (next(worker) != nullptr || workers_[worker].running || !workers_[worker].left.empty()) return false;
    }
    return true;
  }
  int group_of(int worker) const { return worker / request_.depth; }
  int home_of(int group, const Op& op) const {
    return group * request_.depth + naive_device_of(request_, op.minibatch, op.stage);
  }

  void start(int worker, const Op& op) {
    workers_[worker].running = op;
    workers_[worker].begin = now_;
    workers_[worker].end = now_ + (op.kind == OpKind::kUpdate ? costs_.update() : costs_.compute(worker, op));
  }

  void complete(int worker) {
    Worker& self = workers_[worker];
    if (!self.running || self.end != now_) return;
    const Op op = *self.running;
    self.running.reset();
    if (op.kind == OpKind::kBackwardWeights) {
      times_.weights[worker].push_back({op, {self.begin, now_}, static_cast<int>(times_.spans[worker].size())});
      return;
    }
    times_.spans[worker].push_back({self.begin, now_});
    if (op.kind == OpKind::kUpdate) return;
    if (op.kind == OpKind::kBackward)
      self.left.push_back({OpKind::kBackwardWeights, op.stage, op.minibatch, op.round, op.window});
    Op onward = op;
    onward.stage += op.kind == OpKind::kForward ? 1 : -1;
    Tick there = now_;
    if (onward.stage >= 0 && onward.stage < request_.depth) {
      const int to = home_of(group_of(worker), onward);
      const MessageCost cost = costs_.message(worker, to, op);
      if (to != worker) {
        Tick& free = link_free_[{worker, to}];
        free = std::max(free, now_) + cost.transfer;
        there = free + cost.latency;
      }
    }
    made_[{group_of(worker), to_string(op)}] = there;
  }

  bool has_come(int worker, const Op& op) const {
    Op source = op;
    if (op.kind == OpKind::kForward) {
      if (op.stage == 0) return true;
      --source.stage;
    } else if (op.stage == request_.depth - 1) {
      source.kind = OpKind::kForward;
    } else {
      ++source.stage;
    }
    const auto made = made_.find({group_of(worker), to_string(source)});
    return made != made_.end() && made->second <= now_;
  }

  bool run_oldest(int worker) {
    Worker& self = workers_[worker];
    if (self.left.empty()) return false;
    start(worker, self.left.front());
    self.left.pop_front();
    return true;
  }

  // Whether something changed, so that others should look again.
  bool decide(int worker, bool fills_the_wait) {
    Worker& self = workers_[worker];
    if (self.running) return false;
    const Op* op = next(worker);
    if (op == nullptr) return run_oldest(worker);
    if (op->kind == OpKind::kStartReduce || op->kind == OpKind::kCapture) {
      for (const Op& left : self.left) {
        if (left.stage == op->stage && left.window == op->window) return run_oldest(worker);
      }
      if (op->kind == OpKind::kStartReduce) starts_[{op->window, op->stage}].push_back(now_);
      times_.spans[worker].push_back({now_, now_});
      return true;
    }
    if (self.left.size() >= (schedule_.depth() == 1 ? 1U : 2U) && !self.at_update) return run_oldest(worker);
    if (op->kind == OpKind::kUpdate) return update(worker, *op, fills_the_wait);
    if (!has_come(worker, *op)) return run_oldest(worker);
    start(worker, *op);
    return true;
  }

  bool update(int worker, const Op& op, bool fills_the_wait) {
    Worker& self = workers_[worker];
    const bool changed = !self.at_update;
    self.at_update = true;
    arrived_[op.window].insert(worker);
    if (static_cast<int>(arrived_[op.window].size()) < count() || now_ < reduced_at(op.window)) {
      return (fills_the_wait && run_oldest(worker)) || changed;
    }
    self.at_update = false;
    start(worker, op);
    if (self.end == now_) complete(worker);
    return true;
  }

  // When the sums of all stages are complete: one after the other in a mirror group, the last stage first.
  Tick reduced_at(std::int64_t window) {
    std::map<int, Tick> ends;
    Tick all = 0;
    for (int stage = request_.depth - 1; stage >= 0; --stage) {
      Tick& end = ends[naive_mirror_group_of(request_, stage)];
      for (const Tick started : starts_[{window, stage}]) end = std::max(end, started);
      end += costs_.reduce(stage);
      all = std::max(all, end);
    }
    return all;
  }

  const Schedule& schedule_;
  const ScheduleRequest& request_;
  const SeededCosts& costs_;
  std::vector<Worker> workers_;
  std::map<Name, Tick> made_;
  std::map<std::pair<int, int>, Tick> link_free_;
  std::map<std::pair<std::int64_t, int>, std::vector<Tick>> starts_;
  std::map<std::int64_t, std::set<int>> arrived_;
  Tick now_ = 0;
  NaiveTimes times_;
};

}  // namespace

NaiveTimes run_tick_by_tick(const Schedule& schedule, const SeededCosts& costs) {
  return TickByTick(schedule, costs).run();
}

}  // namespace everstep::scheduler
