#include "tests/elastic/brain/small_cluster.h"

#include <algorithm>
#include <utility>

namespace everstep::elastic::test {

WorkerId worker(std::uint64_t number) { return {{0, number}}; }

Result<scheduler::Plan> wide_plan(const std::vector<scheduler::WorkerInfo>& workers,
                                  const scheduler::Plan* /*previous*/) {
  scheduler::Plan plan;
  plan.width = static_cast<int>(workers.size());
  plan.window = std::max(8, plan.width);
  plan.cuts = {0, 4};
  for (const auto& info : workers) plan.workers.push_back(info.id);
  plan.guards.resize(1);
  return plan;
}

SmallCluster::SmallCluster(int min_workers) : min_workers_(min_workers) {
  write({{}, {put(keys_.spec(), std::string(kSpec))}});
}

void SmallCluster::write(const Txn& txn) {
  EVERSTEP_CHECK(store_.apply(txn).ok(), "a write of the test");
  refresh();
}

void SmallCluster::refresh() {
  view_.apply(seal.open(*store_.events_after(watched_, keys_.live())));
  watched_ = store_.revision();
}

void SmallCluster::add(std::uint64_t number, bool is_warm, bool returns) {
  const WorkerId id = worker(number);
  const LeaseId lease = store_.grant();
  const std::string address = "address-" + std::to_string(number % 100);
  MemberRecord self{id, "worker-" + std::to_string(number), "host", address, MemberState::kWarming, "", 0};
  AgentOptions agent{.keys = keys_, .self = self, .spec = std::string(kSpec)};
  agent.lease = lease;
  agent.lease_ttl = 10 * kTicksPerSecond;
  agent.outage_limit = 60 * kTicksPerSecond;
  agent.returns = returns;
  CoordinatorOptions options{.keys = keys_, .self = id, .first_generation = Generation{1}, .plan = plan, .nonce = {}};
  options.lease = lease;
  options.min_workers = min_workers_;
  options.join_debounce = 2000 * kMillisecond;
  options.join_interval = 30 * kTicksPerSecond;
  options.death_debounce = 50 * kMillisecond;
  options.prepare_limit = 10 * kTicksPerSecond;
  options.held_limit = kTicksPerSecond;
  options.rebalances = rebalances;
  options.window_time = window_time;
  options.nonce = [this] { return ++nonces_; };
  workers_.emplace(id, Worker{WorkerAgent(agent), Coordinator(options), lease, {}, {}, {}, {}});
  if (is_warm) tell(number, Warmed{});
}

void SmallCluster::kill(std::uint64_t number) {
  const LeaseId lease = at(number).lease;
  workers_.erase(worker(number));
  EVERSTEP_CHECK(store_.expire(lease).ok(), "the lease of a worker that is killed");
  refresh();
}

void SmallCluster::tell(std::uint64_t number, const AgentEvent& event) {
  carry_out(worker(number), at(number).agent.step(event, view_, now_), true);
}

void SmallCluster::end_training(std::uint64_t number, TrainingEnded::How how, HeldRecord held,
                                std::optional<WorkerId> lost) {
  Worker& self = at(number);
  const Attempt attempt = std::exchange(self.running, std::nullopt)->roster.attempt;
  tell(number, TrainingEnded{attempt, how, held, lost, lost.has_value(), std::nullopt});
}

bool SmallCluster::carry_out(const WorkerId& id, const Decision& decision, bool by_agent) {
  for (const Effect& effect : decision.effects) {
    const Send* send = std::get_if<Send>(&effect);
    if (send == nullptr) {
      act(id, effect);
      continue;
    }
    const Error no_answer{ErrorCode::kUnavailable, "the store is away", {}};
    Result<TxnReply> answer = store_is_away ? Result<TxnReply>(no_answer) : store_.apply(seal.seal(send->txn));
    if (answer) answer = seal.open(std::move(answer).value());
    const Replied reply{send->request, std::move(answer)};
    refresh();
    const auto found = workers_.find(id);
    if (found == workers_.end()) return true;
    Worker& self = found->second;
    const Decision next = by_agent ? self.agent.step(reply, view_, now_) : self.coordinator.step(reply, view_, now_, 0);
    carry_out(id, next, by_agent);
  }
  return !decision.effects.empty();
}

bool SmallCluster::act(const WorkerId& id, const Effect& effect) {
  Worker& self = workers_.at(id);
  if (const auto* note = std::get_if<Note>(&effect)) {
    notes.push_back(note->event);
    return false;
  }
  self.effects.push_back(effect);
  const std::uint64_t number = id.words[1];
  if (const auto* connect = std::get_if<Connect>(&effect)) self.connecting.push_back(connect->roster.attempt);
  if (const auto* begin = std::get_if<Begin>(&effect)) self.running = begin->generation;
  const bool stops = std::holds_alternative<StopAtWindow>(effect) || std::holds_alternative<StopAtRound>(effect);
  if (stops && drains && self.running) {
    const HeldRecord held{false, position, self.running->roster.attempt.generation};
    end_training(number, TrainingEnded::How::kStopped, held);
  }
  if (std::holds_alternative<Abort>(effect) && self.running) {
    end_training(number, TrainingEnded::How::kBroken, {false, {}, {}, copies});
  }
  return true;
}

void SmallCluster::run_until_quiet(Tick milliseconds) {
  for (const Tick later : {Tick{0}, milliseconds}) {
    now_ += later * kMillisecond;
    for (bool changed = true; changed;) {
      changed = false;
      std::vector<WorkerId> ids;
      for (const auto& [id, unused] : workers_) ids.push_back(id);
      for (const WorkerId& id : ids) {
        Worker& self = workers_.at(id);
        if (const Status looked = self.newest.look(view_, keys_); !looked) {
          kill(id.words[1]);
          ended_with_data_loss.push_back(looked.error());
          changed = true;
          continue;
        }
        for (const Attempt& attempt : std::exchange(self.connecting, {})) {
          if (self.connects) tell(id.words[1], Connected{attempt});
        }
        changed = carry_out(id, self.agent.step(Looked{}, view_, now_), true) || changed;
        changed = carry_out(id, self.coordinator.step(Looked{}, view_, now_, 0), false) || changed;
      }
    }
  }
}

std::optional<GenerationRecord> SmallCluster::generation() const {
  const KeyValue* item = view_.find(keys_.generation());
  if (item == nullptr) return std::nullopt;
  return *parse_generation(item->value);
}

}  // namespace everstep::elastic::test
