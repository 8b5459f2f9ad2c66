#include "tests/trainer/recovery/handover_chain.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "base/random.h"
#include "scheduler/plan_text.h"
#include "tests/trainer/recovery/mixing_stage.h"
#include "trainer/threads/stop_gate.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using Where = TestStop::Where;
using namespace std::chrono_literals;

// Keeps nothing of a cut but what it tells of the past.
class HistorySink final : public CheckpointSink {
 public:
  bool idle() override { return true; }
  void save(StagedCut cut) override { history.insert(history.end(), cut.history.begin(), cut.history.end()); }
  void skipped(Position) override {}
  Status finish() override { return {}; }

  std::vector<WindowHistory> history;
};

scheduler::Plan plan_of(const TrainOptions& options) {
  scheduler::Plan plan;
  plan.kind = options.schedule.kind;
  plan.depth = options.schedule.depth;
  plan.pipelines = placement_of(options.schedule).value().pipelines();
  plan.lag = options.schedule.lag;
  plan.provisional = options.schedule.provisional;
  plan.width = options.schedule.width;
  plan.window = options.schedule.window;
  plan.preload = options.schedule.preload;
  plan.cuts = options.cuts;
  return plan;
}

// A dead peer and a cancelled wait follow from somebody else's error.
Error first_error(const std::vector<Result<TrainResult>>& results) {
  const Error* first = nullptr;
  for (const auto& result : results) {
    if (result) continue;
    const ErrorCode code = result.error().code;
    const bool by_itself = code != ErrorCode::kUnavailable && code != ErrorCode::kCancelled;
    if (first == nullptr || by_itself) first = &result.error();
    if (by_itself) break;
  }
  return *first;
}

}  // namespace

// One generation: a thread per worker, and one that asks them to stop as a leader would.
class HandoverChain::Run {
 public:
  Run(const HandoverChain& chain, const TestGeneration& next)
      : chain_(chain),
        next_(next),
        names_(next.workers),
        options_(chain.options_under(next)),
        gates_(next.workers.size()),
        sinks_(next.workers.size()) {
    names_.insert(names_.end(), next.donors.begin(), next.donors.end());
    job_.change = chain.change_to(next);
    job_.model = options_.model;
    job_.accumulation = options_.accumulation;
    job_.lineage = options_.lineage;
    job_.generation = options_.generation;
    job_.timeout = 20s;
    if (!chain.end_states_.empty()) {
      job_.position = chain.position();
      job_.change.inside_window = chain.is_inside_window();
    }
    results.assign(names_.size(), Error{});
    moved_bytes_.assign(names_.size(), 0);
  }

  void run() {
    const auto seed = static_cast<std::uint64_t>(options_.generation.value);
    transports_ = make_thread_transports(static_cast<int>(names_.size()), {50us, seed});
    if (next_.stop.where == Where::kSuperRound && next_.stop.number < 0) ask_before_the_start();
    std::thread leader([this] { lead(); });
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < names_.size(); ++number) {
      threads.emplace_back([this, number] {
        results[number] = work(number);
        transports_[number].reset();  // so that the others see a failure at once
      });
    }
    for (std::thread& thread : threads) thread.join();
    signal(kOver);
    leader.join();
  }

  bool succeeded() const {
    return std::all_of(results.begin(), results.end(), [](const auto& result) { return result.ok(); });
  }
  const std::vector<WindowHistory>& saved() const { return sinks_[0].history; }
  std::int64_t moved_bytes() const {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : moved_bytes_) sum += bytes;
    return sum;
  }

  std::vector<Result<TrainResult>> results;  // donors too, of whom nothing is told
  std::vector<StepReport> steps;

 private:
  Result<TrainResult> work(std::size_t number) {
    Transport& transport = *transports_[number];
    TrainOptions options = options_;
    TrainHooks hooks;
    MovedState moved;
    if (!chain_.end_states_.empty()) {
      const auto found = chain_.end_states_.find(names_[number]);
      auto state = move_state(transport, job_, found == chain_.end_states_.end() ? nullptr : &found->second);
      if (!state) return state.error();
      moved = *std::move(state);
      moved_bytes_[number] = moved.received_bytes;
      if (chain_.change_moved) chain_.change_moved(moved);
      options.resume = moved.resume;
      hooks.restore = [&](const StageLayout& layout, const StageState& state_of_stage) {
        return restore_from(moved, layout, state_of_stage);
      };
    }
    if (number >= next_.workers.size()) {
      transport.leave();
      return TrainResult{};
    }
    add_hooks(number, hooks);
    if (chain_.change_run) chain_.change_run(static_cast<int>(number), options, hooks);
    auto result = train(options, *chain_.data_, transport, hooks);
    if (result) EVERSTEP_TRY(transport.close(20s));
    return result;
  }

  void add_hooks(std::size_t number, TrainHooks& hooks) {
    hooks.now = [] { return Tick{std::chrono::steady_clock::now().time_since_epoch().count()}; };
    add_mixing_hooks(options_.model, hooks);
    if (!chain_.poisoned.empty()) {
      hooks.make_stage = [this](const StageRequest& request) { return make_poisoned_stage(request, chain_.poisoned); };
    }
    hooks.stops = &gates_[number];
    hooks.checkpoints = &sinks_[number];
    hooks.on_step = [this, number](const StepReport& report) {
      if (number == 0) steps.push_back(report);
      const bool is_last = number + 1 == next_.workers.size();
      if (next_.stop.where == Where::kWindowEnd && is_last && report.step == next_.stop.number) {
        gates_[number].stop_at_window_end(next_.stop.how);
      }
    };
    hooks.on_op = [this, number](const OpRecord&) { look_for_stop(number); };
  }

  void ask_before_the_start() {
    for (StopGate& gate : gates_) gate.promise();
    signal(kAsked);
  }

  // A worker that has come to the super-round in question goes no further than one more, so that it is known where the
  // stop will be: promises of others may be lower, never higher.
  void look_for_stop(std::size_t number) {
    if (gates_[number].started() < next_.stop.number) return;
    if (next_.stop.where == Where::kBrokenOff && number == 0) {
      transports_[0]->abort({ErrorCode::kCancelled, "broken off", ""});
    }
    if (next_.stop.where != Where::kSuperRound) return;
    gates_[number].promise();
    if (next_.stop.and_at_window_end) gates_[number].stop_at_window_end(WindowStop::kSaveAndEnd);
    signal(kAsked);
  }

  static constexpr int kQuiet = 0;
  static constexpr int kAsked = 1;
  static constexpr int kOver = 2;

  void signal(int what) {
    int quiet = kQuiet;
    signal_.compare_exchange_strong(quiet, what);
    signal_.notify_all();
  }

  // Takes its time between any two words, so that workers wait for it and run into each other.
  void lead() {
    signal_.wait(kQuiet);
    if (signal_ == kOver) return;
    const RandomStream random(chain_.options_.lineage, static_cast<std::uint64_t>(options_.generation.value));
    std::uint64_t pauses = 0;
    const auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random.below(pauses++, 300))); };
    std::int64_t highest = -1;
    for (StopGate& gate : gates_) {
      highest = std::max(highest, gate.promise());
      pause();
    }
    for (int twice = 0; twice < 2; ++twice) {
      for (StopGate& gate : gates_) {
        gate.stop_after(highest + 1);
        pause();
      }
    }
  }

  const HandoverChain& chain_;
  const TestGeneration& next_;
  std::vector<int> names_;
  const TrainOptions options_;
  TransferJob job_;
  std::deque<StopGate> gates_;
  std::vector<HistorySink> sinks_;
  std::vector<std::int64_t> moved_bytes_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::atomic<int> signal_{kQuiet};
};

HandoverChain::HandoverChain(TrainOptions options) : options_(std::move(options)), data_(make_no_minibatches()) {}

TrainOptions HandoverChain::options_under(const TestGeneration& next) const {
  TrainOptions options = options_;
  options.schedule.kind = next.kind;
  options.schedule.depth = next.depth;
  options.schedule.width = next.width;
  options.schedule.pipelines = next.pipelines;
  options.schedule.lag = next.lag;
  options.schedule.provisional = next.provisional;
  const int stages = placement_of(options.schedule).value().stages();
  options.cuts.clear();
  for (int stage = 0; stage <= stages; ++stage) options.cuts.push_back(stage * options.model.blocks() / stages);
  options.generation = generation_;
  options.plan_text = scheduler::plan_text(plan_of(options));
  return options;
}

TransferRequest HandoverChain::change_to(const TestGeneration& next) const {
  const auto shape_of = [this](const TestGeneration& generation) {
    const TrainOptions options = options_under(generation);
    return PlanShape{options.schedule, options.cuts};
  };
  TransferRequest request{shape_of(last_), {}, shape_of(next), !end_states_.empty() && is_inside_window()};
  std::vector<int> connected = next.workers;
  connected.insert(connected.end(), next.donors.begin(), next.donors.end());
  for (const int name : last_.workers) {
    const auto found = std::find(connected.begin(), connected.end(), name);
    request.holders.push_back(found == connected.end() ? -1 : static_cast<int>(found - connected.begin()));
  }
  return request;
}

Result<RunEnd> HandoverChain::run(const TestGeneration& next) {
  generation_ = generation_.next();
  Run run(*this, next);
  plans_[generation_.value] = plan_of(options_under(next));
  run.run();
  if (!run.succeeded()) return first_error(run.results);
  end_states_.clear();
  for (std::size_t i = 0; i < next.workers.size(); ++i) end_states_[next.workers[i]] = run.results[i].value().state;
  last_ = next;
  steps_.insert(steps_.end(), run.steps.begin(), run.steps.end());
  saved_.insert(saved_.end(), run.saved().begin(), run.saved().end());
  received_bytes_ = run.moved_bytes();
  return run.results[0].value().end;
}

Result<TrainedState> HandoverChain::state() const {
  std::vector<EndState> states;
  for (const int name : last_.workers) states.push_back(end_states_.at(name));
  return joined(states, options_.model);
}

Position HandoverChain::position() const { return end_states_.begin()->second.resume.position; }

std::vector<WindowHistory> HandoverChain::history() const {
  std::vector<WindowHistory> history = saved_;
  const std::vector<WindowHistory>& rest = end_states_.begin()->second.resume.history;
  history.insert(history.end(), rest.begin(), rest.end());
  return history;
}

}  // namespace everstep::trainer
