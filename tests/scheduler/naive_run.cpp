#include "tests/scheduler/naive_run.h"

#include <algorithm>
#include <utility>

#include "scheduler/validate.h"
#include "tests/scheduler/naive_clock.h"
#include "tests/scheduler/naive_shape.h"

namespace everstep::scheduler {
namespace {

using Token = std::tuple<char, int, std::int64_t, int, int, int>;  // letter, group, window, round, minibatch, stage
using Gradients = std::multiset<std::pair<std::int64_t, std::int64_t>>;  // window and position
using Chunk = std::pair<int, int>;                                       // worker and stage

class NaiveRun {
 public:
  NaiveRun(const Schedule& schedule, const SeededCosts& costs)
      : schedule_(schedule),
        request_(schedule.request),
        costs_(costs),
        dealt_(deal(request_)),
        last_round_(naive_last_rounds(request_)),
        held_(naive_chunks(request_)) {
    for (const DealtMinibatch& item : dealt_) {
      positions_[{item.group, item.window, item.round, item.minibatch}] = item.position;
      for (int stage = 0; stage < naive_stages(request_); ++stage) {
        const int device = naive_device_of(request_, item.minibatch % naive_pipelines(request_), stage);
        for (const char letter : {'F', 'B'}) {
          home_[{letter, item.group, item.window, item.round, item.minibatch, stage}] =
              item.group * request_.depth + device;
        }
      }
    }
  }

  NaiveReport run() {
    check_contents();
    if (!report_.harmless()) return std::move(report_);
    const std::size_t count = schedule_.workers.size();
    report_.spans.resize(count);
    report_.seen.resize(count);
    now_.assign(count, 0);
    version_.assign(count, request_.first_window);
    for (bool progress = true; progress;) {
      progress = false;
      for (int worker = 0; worker < static_cast<int>(count); ++worker) {
        if (next(worker) != nullptr && take_turn(worker)) progress = true;
      }
    }
    for (int worker = 0; worker < static_cast<int>(count); ++worker) {
      if (const Op* op = next(worker)) problem(to_string(*op) + " of worker " + std::to_string(worker) + " hangs");
    }
    check_links();
    if (is_clockwork(request_.kind)) check_slots();
    check_collectives();
    check_captures();
    check_in_flight();
    return std::move(report_);
  }

 private:
  void problem(const std::string& text) { report_.problems.push_back(text); }
  int group_of(int worker) const { return worker / request_.depth; }
  bool is_2bw() const { return request_.kind == ScheduleKind::kPipedream2bw; }
  Token token_of(int worker, const Op& op) const {
    return {op.kind == OpKind::kForward ? 'F' : 'B', group_of(worker), op.window, op.round, op.minibatch, op.stage};
  }
  std::int64_t position_of(int worker, const Op& op) {
    return positions_.at({group_of(worker), op.window, op.round, op.minibatch});
  }
  const Op* next(int worker) const {
    const std::size_t index = report_.spans[worker].size();
    return index < schedule_.workers[worker].size() ? &schedule_.workers[worker][index] : nullptr;
  }
  Gradients& buffer(int worker, int stage, std::int64_t window) { return buffers_[{worker, stage, window % 2}]; }

  // Every op that must be there is there once, on the right worker, and nothing else is.
  void check_contents() {
    std::map<std::pair<int, std::string>, int> wanted = naive_contents(request_);
    for (int worker = 0; worker < static_cast<int>(schedule_.workers.size()); ++worker) {
      for (const Op& op : schedule_.workers[worker]) --wanted[{worker, to_string(op)}];
    }
    for (const auto& [op, count] : wanted) {
      const std::string name = op.second + " of worker " + std::to_string(op.first);
      if (count != 0) problem(name + (count > 0 ? " is missing" : " is too much"));
    }
  }

  bool take_turn(int worker) {
    const Op op = *next(worker);
    if (op.kind == OpKind::kUpdate) return meet(worker, op);
    if (is_compute(op)) return compute(worker, op);
    const Gradients& sum = buffer(worker, op.stage, op.window);
    if (op.kind == OpKind::kStartReduce) {
      reduced_[{op.window, op.stage}].insert(sum.begin(), sum.end());
      starts_[{op.window, op.stage}].push_back(now_[worker]);
      report_.applied[{op.window, op.stage}] += static_cast<int>(sum.size());
    } else {
      captures_[{op.window, op.round, op.stage}].insert(sum.begin(), sum.end());
      report_.captured[{op.window, op.round, op.stage}] += static_cast<int>(sum.size());
    }
    finish(worker, now_[worker], now_[worker], version_[worker]);
    return true;
  }

  void finish(int worker, Tick begin, Tick end, std::int64_t seen) {
    now_[worker] = end;
    report_.spans[worker].push_back({begin, end});
    report_.seen[worker].push_back(seen);
  }

  std::int64_t version_read(int worker, const Op& op) {
    const std::string name = to_string(op) + " of worker " + std::to_string(worker);
    if (is_2bw()) {
      const std::int64_t wanted = naive_starts_drained(request_, op.window) ? op.window : op.window - 1;
      const bool kept = wanted == version_[worker] || wanted == version_[worker] - 1;
      if (!kept) problem(name + " reads a version that is not kept");
      return wanted;
    }
    const bool lags = op.round < naive_lagging_rounds(request_, op.window) && version_[worker] == op.window - 1;
    if (!lags && version_[worker] != op.window) problem(name + " reads the wrong version");
    return version_[worker];
  }

  bool compute(int worker, const Op& op) {
    const bool forward = op.kind == OpKind::kForward;
    const int last = naive_stages(request_) - 1;
    Token source = token_of(worker, op);
    auto& [letter, group, window, round, minibatch, stage] = source;
    stage += forward ? -1 : 1;
    if (!forward && op.stage == last) std::tie(letter, stage) = std::pair('F', last);
    if (!forward && !done_.contains({'F', group, window, round, minibatch, op.stage})) return false;
    if (stage >= 0) {
      const auto input = done_.find(source);
      if (input == done_.end()) return false;
      now_[worker] = std::max(now_[worker], input->second);
      if (home_.at(source) != worker) consumed_[{home_.at(source), worker}].push_back(source);
    }
    const Tick begin = now_[worker];
    const Tick end = begin + costs_.compute(worker, op);
    Token target = token_of(worker, op);
    std::get<5>(target) += forward ? 1 : -1;
    done_[token_of(worker, op)] = end;
    if (const auto receiver = home_.find(target); receiver != home_.end() && receiver->second != worker) {
      const MessageCost cost = costs_.message(worker, receiver->second, op);
      Tick& free = link_free_[{worker, receiver->second}];
      free = std::max(free, end) + cost.transfer;
      done_[token_of(worker, op)] = free + cost.latency;
      sent_[{worker, receiver->second}].push_back(token_of(worker, op));
    }
    const std::int64_t seen = version_read(worker, op);
    forward ? start_minibatch(worker, op, seen) : end_minibatch(worker, op, seen);
    finish(worker, begin, end, seen);
    return true;
  }

  void start_minibatch(int worker, const Op& op, std::int64_t seen) {
    forward_version_[token_of(worker, op)] = seen;
    int& peak = report_.peak_on_worker[worker];
    peak = std::max(peak, ++in_flight_[{worker, -1}]);
    if (op.stage != 0) return;
    int& peak_at_first_stage = report_.peak_at_first_stage[worker];
    peak_at_first_stage = std::max(peak_at_first_stage, ++in_flight_[{worker, 0}]);
  }

  void end_minibatch(int worker, const Op& op, std::int64_t seen) {
    --in_flight_[{worker, -1}];
    if (op.stage == 0) --in_flight_[{worker, 0}];
    Token forward = token_of(worker, op);
    std::get<0>(forward) = 'F';
    if (seen != forward_version_.at(forward)) {
      report_.mismatched.insert({group_of(worker), op.window, op.round, op.minibatch, op.stage});
    }
    buffer(worker, op.stage, op.window).insert({op.window, position_of(worker, op)});
    if (!buffer(worker, op.stage, 0).empty() && !buffer(worker, op.stage, 1).empty()) {
      report_.doubly_buffered.insert({worker, op.stage});
      const bool has_second = request_.kind == ScheduleKind::kClockwork
                                  ? naive_backwards_meet(request_, worker % request_.depth, op.stage)
                                  : request_.kind == ScheduleKind::kAmdp && op.stage == naive_stages(request_) - 1;
      if (!has_second) {
        problem(to_string(op) + " of worker " + std::to_string(worker) + " has no second gradient buffer");
      }
    }
  }

  // Waits until all (PipeDream-2BW: all copies of this device) are here; the last one to come lets all go.
  bool meet(int worker, const Op& op) {
    std::vector<int> members;
    for (int other = 0; other < request_.depth * request_.width; ++other) {
      if (!is_2bw() || other % request_.depth == worker % request_.depth) members.push_back(other);
    }
    Tick begin = 0;
    for (const int member : members) {
      if (next(member) == nullptr || *next(member) != op) return false;
      begin = std::max(begin, now_[member]);
    }
    std::map<int, Tick> reduces_end;
    for (int stage = naive_stages(request_) - 1; stage >= 0; --stage) {
      const auto holder = std::find_if(members.begin(), members.end(), [&](int m) {
        return held_.contains({m, stage});
      });
      if (holder == members.end()) continue;
      const std::vector<Tick>& starts = starts_[{op.window, stage}];
      const int group = naive_mirror_group_of(request_, *holder % request_.depth);
      Tick& end = reduces_end[group];
      for (const Tick start : starts) end = std::max(end, start);
      end += costs_.reduce(stage);
      begin = std::max(begin, end);
      if (!last_round_.contains(op.window)) continue;  // resumed at its end
      check_sum("update " + to_string(op), reduced_[{op.window, stage}], op.window, last_round_.at(op.window));
    }
    for (const int member : members) {
      version_[member] = op.window + 1;
      for (int stage = 0; stage < naive_stages(request_); ++stage) buffer(member, stage, op.window).clear();
      finish(member, begin, begin + costs_.update(), op.window + 1);
    }
    return true;
  }

  void check_sum(const std::string& what, const Gradients& sum, std::int64_t window, int last_round) {
    Gradients wanted;
    for (const DealtMinibatch& item : dealt_) {
      if (item.window == window && item.round <= last_round) wanted.insert({window, item.position});
    }
    if (sum != wanted) problem(what + " does not hold each gradient once");
  }

  void check_captures() {
    for (const auto& [key, sum] : captures_) {
      const auto& [window, round, stage] = key;
      check_sum(to_string(Op{OpKind::kCapture, stage, 0, round, window}), sum, window, round);
    }
  }

  void check_in_flight() {
    const InFlightLimits limits = in_flight_limits(schedule_);
    for (int worker = 0; worker < static_cast<int>(schedule_.workers.size()); ++worker) {
      if (report_.peak_on_worker[worker] > limits.per_device ||
          report_.peak_at_first_stage[worker] > limits.per_first_stage) {
        problem("worker " + std::to_string(worker) + " has too many minibatches in flight");
      }
    }
  }

  void check_links() {
    for (const auto& [link, tokens] : sent_) {
      if (tokens != consumed_[link]) {
        problem("link " + std::to_string(link.first) + " to " + std::to_string(link.second) + " is out of order");
      }
    }
  }

  void check_slots() {
    for (const std::string& text : naive_slot_problems(schedule_)) problem(text);
  }

  void check_collectives() {
    std::map<int, std::vector<std::vector<Op>>> by_group;
    for (int worker = 0; worker < static_cast<int>(schedule_.workers.size()); ++worker) {
      std::vector<Op> collectives;
      for (const Op& op : schedule_.workers[worker]) {
        // In clockwork a capture copies at once, and its reduce waits for its turn.
        const bool waits = op.kind == OpKind::kCapture && is_clockwork(request_.kind);
        if (op.kind == OpKind::kStartReduce || (op.kind == OpKind::kCapture && !waits)) collectives.push_back(op);
      }
      by_group[naive_mirror_group_of(request_, worker % request_.depth)].push_back(collectives);
    }
    for (const auto& [group, lists] : by_group) {
      for (const std::vector<Op>& list : lists) {
        if (list != lists.front())
          problem("mirror group " + std::to_string(group) + " starts collectives in two orders");
      }
    }
  }

  const Schedule& schedule_;
  const ScheduleRequest& request_;
  const SeededCosts& costs_;
  std::vector<DealtMinibatch> dealt_;
  std::map<std::int64_t, int> last_round_;
  std::set<Chunk> held_;
  std::map<std::tuple<int, std::int64_t, int, int>, std::int64_t> positions_;
  std::map<Token, int> home_;
  std::map<Token, Tick> done_;
  std::map<Token, std::int64_t> forward_version_;
  std::map<std::pair<int, int>, std::vector<Token>> sent_, consumed_;
  std::map<std::pair<int, int>, Tick> link_free_;
  std::map<std::tuple<int, int, std::int64_t>, Gradients> buffers_;
  std::map<std::tuple<std::int64_t, int>, Gradients> reduced_;
  std::map<std::tuple<std::int64_t, int>, std::vector<Tick>> starts_;
  std::map<std::tuple<std::int64_t, int, int>, Gradients> captures_;
  std::map<std::pair<int, int>, int> in_flight_;  // worker, and stage 0 or all
  std::vector<Tick> now_;
  std::vector<std::int64_t> version_;
  NaiveReport report_;
};

}  // namespace

NaiveReport run_naively(const Schedule& schedule, const SeededCosts& costs) { return NaiveRun(schedule, costs).run(); }

}  // namespace everstep::scheduler
