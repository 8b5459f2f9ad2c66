#include "tests/trainer/recovery/guarded_chain.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/random.h"
#include "scheduler/plan_text.h"
#include "tests/trainer/recovery/guard_places.h"
#include "tests/trainer/recovery/mixing_stage.h"
#include "trainer/model/wrapped_stage.h"
#include "trainer/threads/stop_gate.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

// Takes cuts and commits none of them.
class UncommittedCuts final : public CheckpointSink {
 public:
  bool idle() override { return true; }
  void save(StagedCut cut) override { history.insert(history.end(), cut.history.begin(), cut.history.end()); }
  void skipped(Position) override {}
  Status finish() override { return {}; }

  std::vector<WindowHistory> history;
};

bool follows_from_a_death(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kCancelled;
}

}  // namespace

CallTest at_send(FrameKind kind, std::int64_t window, int nth) {
  return [=, seen = 0](const TransportCall& call) mutable {
    const bool is_meant =
        call.kind == TransportCall::Kind::kSend && call.header.kind == kind && call.header.window >= window;
    return is_meant && seen++ == nth;
  };
}

// A thread per worker and donor.
class GuardedChain::Run {
 public:
  Run(const GuardedChain& chain, const GuardedGeneration& next)
      : chain_(chain), next_(next), options_(chain.options_under(next)), names_(connected(next)) {
    if (chain.origin_) {
      job_.change = chain.change_to(next);
      job_.position = {chain.version_.value * options_.schedule.window};
    }
    job_.model = options_.model;
    job_.accumulation = options_.accumulation;
    job_.lineage = options_.lineage;
    job_.generation = options_.generation;
    job_.timeout = 20s;
    members.resize(names_.size());
    received_bytes.resize(names_.size());
  }

  void run() {
    const auto workers = static_cast<int>(names_.size());
    const auto seed = static_cast<std::uint64_t>(options_.generation.value);
    transports_ =
        chain_.make_transports ? chain_.make_transports(workers) : make_thread_transports(workers, {50us, seed});
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < names_.size(); ++number) {
      members[number].copies = std::make_shared<StateCopies>();
      threads.emplace_back([this, number] { members[number].ended = work(number); });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<Member> members;
  std::vector<std::int64_t> received_bytes;

 private:
  Status work(std::size_t number) {
    MovedState moved;
    if (chain_.origin_) {
      const auto state_from = [&](const auto& holders) {
        const auto found = holders.find(names_[number]);
        return move_state(*transports_[number], job_, found == holders.end() ? nullptr : &found->second);
      };
      auto state = chain_.origin_->sums.empty() ? state_from(chain_.origin_->copies) : state_from(chain_.origin_->sums);
      if (!state) return state.error();
      moved = *std::move(state);
      received_bytes[number] = moved.received_bytes;
    }
    const bool is_donor = number >= next_.workers.size();
    if (is_donor) {
      transports_[number]->leave();
      return {};
    }
    const auto dies = next_.dies.find(names_[number]);
    MortalTransport transport(std::move(transports_[number]), dies == next_.dies.end() ? nullptr : dies->second);
    if (chain_.change_transport) chain_.change_transport(names_[number], transport);
    Status ended = train_from(moved, transport, members[number]);
    members[number].calls = transport.calls();
    members[number].died = transport.is_dead();
    if (ended) return transport.close(20s);
    transport.leave();
    return ended;
  }

  Status train_from(const MovedState& moved, Transport& transport, Member& member) {
    TrainOptions options = options_;
    TrainHooks hooks;
    UncommittedCuts sink;
    hooks.now = [] { return Tick{std::chrono::steady_clock::now().time_since_epoch().count()}; };
    add_mixing_hooks(options_.model, hooks);
    if (!chain_.poisoned.empty()) {
      hooks.make_stage = [this](const StageRequest& request) { return make_poisoned_stage(request, chain_.poisoned); };
    }
    hooks.make_stage = [make = hooks.make_stage, &member](const StageRequest& request) {
      return wrap_ops(make(request), [&member](StageOp op, Position position, const std::function<void()>& run) {
        if (op == StageOp::kForward) member.ran.insert(position.value);
        run();
      });
    };
    if (chain_.origin_) {
      options.resume = moved.resume;
      hooks.restore = [&](const StageLayout& layout, const StageState& state) {
        return restore_from(moved, layout, state);
      };
    }
    StopGate gate;
    if (next_.stops_at_once) {
      gate.stop_after(gate.promise() + 1);
      hooks.stops = &gate;
    }
    hooks.checkpoints = &sink;
    hooks.copies = member.copies.get();
    hooks.on_step = [&](const StepReport& report) { member.updates = report.step; };
    auto result = (chain_.train_with ? chain_.train_with : train)(options, *chain_.data_, transport, hooks);
    member.uncommitted = sink.history;
    if (!result) return result.error();
    if (result->end != RunEnd::kGroupStop) return {};
    member.sums = std::move(result->state);
    return Error{ErrorCode::kUnavailable, "a worker of another group died", ""};
  }

  const GuardedChain& chain_;
  const GuardedGeneration& next_;
  const TrainOptions options_;
  const std::vector<int> names_;
  TransferJob job_;
  std::vector<std::unique_ptr<Transport>> transports_;
};

GuardedChain::GuardedChain(TrainOptions options) : options_(std::move(options)), data_(make_no_minibatches()) {}

TrainOptions GuardedChain::options_under(const GuardedGeneration& next) const {
  TrainOptions options = options_;
  const scheduler::Plan plan = plan_of(next, options_);
  options.schedule = scheduler::request_of(plan);
  options.schedule.preload = options_.schedule.preload;
  options.cuts = plan.cuts;
  options.generation = generation_;
  options.plan_text = scheduler::plan_text(plan);
  options.group_stop_limit = 2s;
  const std::vector<int> names = connected(next);
  for (const std::vector<int>& guards : guards_of(next)) {
    std::vector<int>& numbers = options.guards.emplace_back();
    for (const int guard : guards) numbers.push_back(number_of(names, guard));
  }
  return options;
}

TransferRequest GuardedChain::change_to(const GuardedGeneration& next) const {
  const GuardedGeneration& before = origin_->generation;
  const auto shape_of = [this](const GuardedGeneration& generation) {
    const scheduler::Plan plan = plan_of(generation, options_);
    return PlanShape{scheduler::request_of(plan), plan.cuts};
  };
  TransferRequest request{shape_of(before), {}, shape_of(next)};
  const std::vector<int> names = connected(next);
  if (!origin_->sums.empty()) {
    request.is_group_sums = true;
    for (const int name : before.workers) request.holders.push_back(number_of(names, name));
    return request;
  }
  CopyMap& copies = request.copies.emplace();
  for (const int name : before.workers) {
    const auto found = origin_->copies.find(name);
    const bool is_left = found != origin_->copies.end();
    request.holders.push_back(is_left ? number_of(names, name) : -1);
    copies.complete.push_back(is_left ? found->second.complete : CopyParts{});
  }
  for (const std::vector<int>& guards : guards_of(before)) {
    std::vector<int>& of_stage = copies.guards.emplace_back();
    for (const int guard : guards) of_stage.push_back(number_of(before.workers, guard));
  }
  return request;
}

Status GuardedChain::run(const GuardedGeneration& next) {
  generation_ = generation_.next();
  plans_[generation_.value] = plan_of(next, options_);
  Run run(*this, next);
  run.run();
  members_.clear();
  received_bytes_ = 0;
  const std::vector<int> names = connected(next);
  for (std::size_t number = 0; number < names.size(); ++number) {
    members_[names[number]] = run.members[number];
    received_bytes_ += run.received_bytes[number];
    const Status& ended = run.members[number].ended;
    if (!ended && (next.dies.empty() || !follows_from_a_death(ended.error()))) return ended;
  }
  const bool is_meant = std::any_of(next.dies.begin(), next.dies.end(), [](const auto& dies) { return dies.second; });
  const bool died =
      std::any_of(members_.begin(), members_.end(), [](const auto& member) { return member.second.died; });
  if (is_meant && !died) return Error{ErrorCode::kInternal, "nobody came to where it was to die", ""};
  return choose_origin(next);
}

// Whether those who are left have every stage, told another way than the product does.
bool GuardedChain::covers(const Past& past, Version version) const {
  const GuardedGeneration& last = past.generation;
  const scheduler::Placement placement = scheduler::placement_of(plan_of(last, options_));
  const std::vector<std::vector<int>> guards = guards_of(last);
  const auto has = [&](int name, auto part) {
    if (last.dies.contains(name)) return false;
    const auto state = past.members.at(name).copies->at(version);
    return state != nullptr && state->complete.*part;
  };
  for (int stage = 0; stage < placement.stages(); ++stage) {
    bool is_there = std::any_of(guards[stage].begin(), guards[stage].end(),
                                [&](int guard) { return has(guard, &CopyParts::guarded); });
    for (int group = 0; group < last.width; ++group) {
      is_there = is_there || has(last.workers[group * last.depth + placement.owner_of(stage)], &CopyParts::owned);
    }
    if (!is_there) return false;
  }
  return true;
}

bool GuardedChain::take_newest_origin(const Past& past) {
  std::int64_t version = version_.value;
  for (const auto& [name, member] : past.members) version = std::max(version, member.updates);
  while (version >= 0 && !covers(past, {version})) --version;
  if (version >= 0) take_origin(past, {version});
  return version >= 0;
}

Status GuardedChain::choose_origin(const GuardedGeneration& last) {
  if (take_newest_origin({last, members_})) return {};
  if (newest_update() == 0) {
    if (!origin_) return {};
    // Nobody has forgotten yet what the generation before left behind, but those who died now are missing there, too.
    Past past = origin_->past;
    past.generation.dies.insert(last.dies.begin(), last.dies.end());
    if (take_newest_origin(past)) return {};
  }
  return Error{ErrorCode::kUnavailable, "those who are left have no version in common", ""};
}

void GuardedChain::take_origin(const Past& past, Version version) {
  Origin origin{past, past.generation, {}, {}};
  version_ = version;
  for (const auto& [name, member] : past.members) {
    const auto state = member.copies->at(version);
    if (state == nullptr || past.generation.dies.contains(name)) continue;
    CopiedState& copies = origin.copies[name] = *state;
    copies.resume.history = untold(member, copies.resume);
  }
  origin_ = std::move(origin);
  take_sums_of_a_group();
}

std::vector<WindowHistory> GuardedChain::untold(const Member& member, const ResumePoint& resume) const {
  std::vector<WindowHistory> known = member.uncommitted;
  known.insert(known.end(), resume.history.begin(), resume.history.end());
  return untold_history(std::move(known), Position{0}, resume.position, options_.schedule.window);
}

// Of several groups the one that kept most.
void GuardedChain::take_sums_of_a_group() {
  const GuardedGeneration& last = origin_->past.generation;
  const std::map<int, Member>& members = origin_->past.members;
  for (int group = 0; group < last.width; ++group) {
    GuardedGeneration alone = last;
    const auto first = last.workers.begin() + std::ptrdiff_t{group} * last.depth;
    alone.workers.assign(first, first + last.depth);
    alone.width = 1;
    const auto has_sums = [&](int name) {
      const auto& sums = members.at(name).sums;
      return !last.dies.contains(name) && sums && sums->resume.version == version_;
    };
    if (!std::all_of(alone.workers.begin(), alone.workers.end(), has_sums)) continue;
    if (members.at(*first).sums->resume.in_sums.size() <= ranges_in_sums().size()) continue;
    origin_->generation = alone;
    origin_->sums.clear();
    for (const int name : alone.workers) {
      EndState& state = origin_->sums[name] = *members.at(name).sums;
      state.resume.history = untold(members.at(name), state.resume);
      if (change_sums) change_sums(state);
    }
  }
}

std::vector<WindowHistory> GuardedChain::ranges_in_sums() const {
  return origin_ && !origin_->sums.empty() ? origin_->sums.begin()->second.resume.in_sums
                                           : std::vector<WindowHistory>();
}

std::int64_t GuardedChain::newest_update() const {
  std::int64_t newest = 0;
  for (const auto& [name, member] : members_) newest = std::max(newest, member.updates);
  return newest;
}

std::vector<WindowHistory> GuardedChain::history() const {
  return origin_ ? origin_->copies.begin()->second.resume.history : std::vector<WindowHistory>();
}

Result<TrainedState> GuardedChain::state() const {
  std::vector<EndState> states;
  for (const auto& [name, copies] : origin_->copies) {
    EndState& one = states.emplace_back();
    one.resume = copies.resume;
    if (copies.complete.owned) one.stages.insert(one.stages.end(), copies.owned.begin(), copies.owned.end());
    if (copies.complete.guarded) one.stages.insert(one.stages.end(), copies.guarded.begin(), copies.guarded.end());
  }
  return joined(states, options_.model);
}

std::string GuardedChain::difference_from_reference() const {
  if (!origin_) return version_ == Version{0} ? "" : "no origin";
  const auto state = this->state();
  if (!state) return state.error().message;
  TrainHooks hooks;
  add_mixing_hooks(options_.model, hooks);
  if (!poisoned.empty()) {
    hooks.make_stage = [this](const StageRequest& request) { return make_poisoned_stage(request, poisoned); };
  }
  ReferenceRun reference(options_, *data_, hooks);
  for (const WindowHistory& past : history()) {
    const auto step =
        reference.run({past.window, past.first, past.end, past.generation, plans_.at(past.generation.value),
                       past.flushed, past.skipped, past.left_out, past.norm_limit, past.provisional});
    if (!step) return step.error().message;
    if (step->losses != past.losses) return "losses of window " + std::to_string(past.window);
  }
  return difference_between(state_of(reference, options_.schedule.window), *state);
}

GuardedGeneration with_a_death(GuardedGeneration generation, const GuardedChain& undisturbed, std::uint64_t seed) {
  const RandomStream random(seed, 13);
  const int name = generation.workers[random.below(0, generation.workers.size())];
  const auto calls = static_cast<std::uint64_t>(undisturbed.members().at(name).calls);
  generation.dies[name] = at_call(static_cast<std::int64_t>(random.below(1, calls)));
  return generation;
}

std::vector<int> left_of(const GuardedGeneration& generation) {
  std::vector<int> left = generation.workers;
  std::erase_if(left, [&](int name) { return generation.dies.contains(name); });
  return left;
}

std::string run_again(const GuardedChain& chain, const std::vector<WindowHistory>& ranges) {
  for (const WindowHistory& range : ranges) {
    for (int i = range.first; i < range.end; ++i) {
      const std::int64_t position = range.window * chain.options().schedule.window + i;
      for (const auto& [name, member] : chain.members()) {
        if (member.ran.contains(position)) return "minibatch " + std::to_string(position);
      }
    }
  }
  return {};
}

}  // namespace everstep::trainer
