#include "scheduler/run_checks.h"

#include <algorithm>
#include <deque>

#include "scheduler/version_checks.h"

namespace everstep::scheduler {
namespace {

// Follows one worker through what it ran.
class RunCheck {
 public:
  RunCheck(const Schedule& schedule, int worker)
      : list_(schedule.workers[worker]),
        worker_(worker),
        splits_(splits_backwards(schedule.request.kind)),
        most_left_(most_pending_weights(schedule.depth())) {}

  Status step(const Op& op) {
    if (op.kind == OpKind::kBackwardWeights) return weights(op);
    if (next_ == list_.size() || op != list_[next_]) return broken(at(worker_, op) + " is not the next of its list");
    ++next_;
    const bool closes = closes_sum(op);
    const auto is_open = [&](const Op& left) { return left.stage == op.stage && left.window == op.window; };
    if (const auto left = std::find_if(left_.begin(), left_.end(), is_open); closes && left != left_.end()) {
      return broken(at(worker_, *left) + " comes after " + to_string(op) + ", which needs it");
    }
    if (!closes && left_.size() >= most_left_) {
      return broken(at(worker_, left_.front()) + " is not done before " + to_string(op) +
                    ", and another one waits, too");
    }
    if (splits_ && op.kind == OpKind::kBackward) left_.push_back(weights_of(op));
    return {};
  }

  Status end() const {
    if (next_ < list_.size()) return broken(at(worker_, list_[next_]) + " did not run");
    if (!left_.empty()) return broken(at(worker_, left_.front()) + " did not run");
    return {};
  }

 private:
  Status weights(const Op& op) {
    if (left_.empty() || op != left_.front()) return broken(at(worker_, op) + " is not the oldest that is left to do");
    left_.pop_front();
    return {};
  }

  const std::vector<Op>& list_;
  int worker_;
  bool splits_;
  std::size_t most_left_;
  std::size_t next_ = 0;
  std::deque<Op> left_;
};

}  // namespace

std::vector<std::vector<Op>> ops_as_run(const Schedule& schedule, const std::vector<std::vector<FloatingOp>>& weights) {
  std::vector<std::vector<Op>> ran;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    const std::vector<Op>& list = schedule.workers[worker];
    std::vector<Op>& ops = ran.emplace_back();
    auto floating = weights[worker].begin();
    for (int place = 0; place <= std::ssize(list); ++place) {
      for (; floating != weights[worker].end() && floating->place == place; ++floating) ops.push_back(floating->op);
      if (place < std::ssize(list)) ops.push_back(list[place]);
    }
  }
  return ran;
}

Status validate_run(const Schedule& schedule, const std::vector<std::vector<Op>>& ran) {
  if (ran.size() != schedule.workers.size()) return broken("a run of another number of workers");
  for (int worker = 0; worker < static_cast<int>(ran.size()); ++worker) {
    RunCheck check(schedule, worker);
    for (const Op& op : ran[worker]) EVERSTEP_TRY(check.step(op));
    EVERSTEP_TRY(check.end());
  }
  return {};
}

}  // namespace everstep::scheduler
