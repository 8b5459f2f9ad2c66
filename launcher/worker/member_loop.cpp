#include "launcher/worker/member_loop.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/log_line.h"
#include "base/version.h"
#include "launcher/cli/boot_clock.h"
#include "launcher/job/patient_store.h"
#include "launcher/job/resume_rules.h"
#include "launcher/job/train_plan.h"
#include "launcher/worker/worker_process.h"
#include "storage/hdf5/hdf5_format.h"
#include "trainer/checkpoints/state_tensors.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::launcher {
namespace {

using elastic::AgentEvent;
using std::chrono::milliseconds;

constexpr milliseconds kCallDeadline{1000};
constexpr milliseconds kGrantDeadline{5000};
// How long the loop may sleep: a lost connection is noticed by the training thread at once where it waits for frames.
constexpr milliseconds kLongestSleep{100};
constexpr Tick kDeathDebounce = kTicksPerSecond / 20;
constexpr Tick kPrepareLimit = 20 * kTicksPerSecond;
constexpr Tick kHeldLimit = 2 * kTicksPerSecond;
// More than a group of short super-rounds may take to stop by itself (generation_run.cpp), and less than the leader
// waits.
constexpr Tick kGroupLimit = kTicksPerSecond * 3 / 2;

template <typename Duration>
Tick ticks(Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

WorkerId random_worker_id() {
  std::random_device random;
  const auto word = [&] { return (std::uint64_t{random()} << 32) | random(); };
  return {{word(), word()}};
}

}  // namespace

Result<std::unique_ptr<MemberLoop>> MemberLoop::begin(WorkerParts& parts) {
  const Tick before = boot_now();
  const auto lease = parts.kv.grant(parts.job.membership.lease_ttl, kGrantDeadline);
  if (!lease) return lease.error();
  return std::unique_ptr<MemberLoop>(new MemberLoop(parts, random_worker_id(), *lease, before));
}

MemberLoop::MemberLoop(WorkerParts& parts, WorkerId self, elastic::LeaseId lease, Tick granted)
    : parts_(parts),
      self_(self),
      lease_(lease),
      view_(parts.kv, parts.keys.live(), [this] { mailbox_.put(Poke{}); }),
      agent_(agent_options(lease)),
      coordinator_(coordinator_options(lease)),
      commits_(parts.kv, parts.checkpoints, commit_facts(), parts.log),
      ground_{parts.job.request,
              parts.data,
              parts.checkpoints,
              parts.kv,
              parts.keys,
              parts.job.found.spec.lineage,
              self,
              parts.watch,
              parts.recorder,
              parts.device,
              parts.slowdown},
      connector_(parts.connector, parts.device, parts.keys, parts.job.found.spec.lineage, self,
                 [this](AgentEvent event) { mailbox_.put(std::move(event)); }),
      keeper_(parts.kv,
              {lease, ticks(parts.job.membership.lease_ttl), granted, [&parts] { return parts.watch.makes_progress(); },
               [this](const LeaseNews& news) { on_lease_news(news); }}) {}

MemberLoop::~MemberLoop() {
  run_.reset();
  (void)parts_.kv.revoke(lease_, kCallDeadline);
}

elastic::AgentOptions MemberLoop::agent_options(elastic::LeaseId lease) const {
  elastic::AgentOptions options{.keys = parts_.keys, .self = {}, .spec = {}};
  options.self.id = self_;
  options.returns = parts_.returns;
  options.self.name = parts_.name;
  options.self.host = parts_.host;
  options.self.address = parts_.connector.address();
  options.spec = parts_.job.found.text;
  options.lease = lease;
  options.lease_ttl = ticks(parts_.job.membership.lease_ttl);
  options.outage_limit = ticks(parts_.job.membership.outage_limit);
  options.group_limit = [this] { return group_limit(); };
  return options;
}

elastic::CoordinatorOptions MemberLoop::coordinator_options(elastic::LeaseId lease) const {
  const MembershipOptions& membership = parts_.job.membership;
  elastic::CoordinatorOptions options{
      .keys = parts_.keys, .self = self_, .first_generation = {}, .plan = {}, .nonce = {}};
  options.lease = lease;
  options.first_generation = parts_.job.found.first_generation();
  options.expected_workers = parts_.job.found.first_workers();
  options.min_workers = membership.min_workers;
  options.join_debounce = ticks(membership.join_debounce);
  options.join_interval = ticks(membership.join_interval);
  options.death_debounce = kDeathDebounce;
  options.prepare_limit = kPrepareLimit;
  options.held_limit = kHeldLimit;
  options.plan = [&request = parts_.job.request](const std::vector<scheduler::WorkerInfo>& workers,
                                                 const scheduler::Plan* previous) -> Result<scheduler::Plan> {
    auto plan = make_train_plan(request, workers, previous);
    if (!plan) return plan.error();
    return std::move(plan->plan);
  };
  options.rebalances = membership.rebalances;
  options.window_time = [&request = parts_.job.request](const scheduler::Plan& plan,
                                                        const std::vector<scheduler::WorkerInfo>& workers) {
    return predicted_window(request, plan, workers);
  };
  options.nonce = [] { return std::random_device{}(); };
  return options;
}

CommitFacts MemberLoop::commit_facts() const {
  const TrainRequest& request = parts_.job.request;
  CommitFacts facts{parts_.keys, self_, request.checkpoints->retention, {}, parts_.job.found.first_sequence(),
                    parts_.curve};
  trainer::RunFacts& run = facts.run;
  run.job = request.checkpoints->store.job;
  run.lineage = parts_.job.found.spec.lineage;
  run.blocks = request.options.model.blocks();
  run.accumulation = trainer::accumulation_name(request.options.accumulation);
  run.configuration = stored_settings(parts_.job.config, parts_.job.found.spec.data_hash);
  run.provenance = {{"everstep", std::string(kVersion)}, {"hdf5", storage::hdf5_version()}};
  for (auto& fact : parts_.device.provenance()) run.provenance.push_back(std::move(fact));
  std::sort(run.provenance.begin(), run.provenance.end());
  return facts;
}

void MemberLoop::ask_to_leave(const LeaveNotice& notice) {
  mailbox_.put(AgentEvent(elastic::LeaveAsked{notice.reason, notice.within_ms}));
}

void MemberLoop::on_lease_news(const LeaseNews& news) {
  renewed_at_ = news.last_renewed;
  if (!news.withheld) mailbox_.put(StoreTried{!news.error || !is_silence(*news.error)});
  if (news.state == LeaseNews::State::kGone) {
    mailbox_.put(AgentEvent(elastic::LeaseLost{}));
  } else {
    mailbox_.put(AgentEvent(elastic::RenewalNews{news.last_renewed, std::nullopt}));
  }
}

MemberLoop::End MemberLoop::run() {
  handle(elastic::Warmed{});
  while (!end_) {
    std::vector<Message> messages = mailbox_.take_all(patience());
    const Tick now = boot_now();
    const bool is_due = wake_ && now >= *wake_;
    const auto changed = view_.refresh(now);
    if (!changed) return {std::nullopt, changed.error()};
    if (run_) {
      run_->notice_loss();
      tell_of_dead(run_->lines());
    }
    if (is_due) wake_.reset();
    handle_all(messages);
    watch_old_lines(now);
    if (*changed || is_due || !messages.empty()) {
      if (*changed) time_generation(now);
      step_agent(elastic::Looked{});
      look_for_tampering(now);
      step_coordinator(elastic::Looked{});
    }
    look_after_checkpoints();
    show_progress();
    look_at_outage();
  }
  return *end_;
}

// Training goes on without etcd, but one that has nothing left to train, or is to leave, must not wait for it for long.
void MemberLoop::look_at_outage() {
  const bool has_all_steps = parts_.progress.now().last.step >= parts_.job.request.options.steps;
  const elastic::View& view = view_.view();
  const elastic::KeyValue* item = view.find(parts_.keys.drain());
  const auto drain = item == nullptr ? not_found("nobody drains") : elastic::parse_drain(item->value);
  const bool is_to_leave = is_asked_to_leave_ || view.find(parts_.keys.drain_request(self_)) != nullptr;
  parts_.outage.set_at_end(has_all_steps || is_to_leave || (drain && drain->ends_job), boot_now());
  if (!end_ && parts_.outage.is_too_long()) end_ = End{std::nullopt, parts_.outage.error()};
}

std::chrono::nanoseconds MemberLoop::patience() const {
  std::chrono::nanoseconds longest = kLongestSleep;
  if (wake_) longest = std::min(longest, std::chrono::nanoseconds(*wake_ - boot_now()));
  return std::max(longest, std::chrono::nanoseconds(0));
}

// While the store is away a turn of the loop takes seconds, and news of the lease come faster: only the last one
// counts.
void MemberLoop::handle_all(std::vector<Message>& messages) {
  const auto is_renewal = [](const Message& message) {
    const auto* event = std::get_if<AgentEvent>(&message);
    return event != nullptr && std::holds_alternative<elastic::RenewalNews>(*event);
  };
  const auto newest = std::find_if(messages.rbegin(), messages.rend(), is_renewal);
  for (Message& message : messages) {
    if (end_) return;
    if (is_renewal(message) && &message != &*newest) continue;
    if (const auto* tried = std::get_if<StoreTried>(&message)) {
      tried->has_answered ? parts_.outage.answered() : parts_.outage.failed(boot_now());
    }
    if (auto* event = std::get_if<AgentEvent>(&message)) handle(std::move(*event));
  }
}

// What the loop itself must know of an event, before the agent is told.
void MemberLoop::handle(AgentEvent event) {
  auto* renewal = std::get_if<elastic::RenewalNews>(&event);
  if (renewal != nullptr) known_renewal_ = renewal->last_renewed = renewed_at_;
  if (renewal != nullptr && run_) {
    // Peers take it for news of the moment. What the store has kept waiting for too long is none.
    const bool is_new = renewal->last_renewed > std::exchange(told_renewed_, renewal->last_renewed);
    const bool is_fresh = boot_now() - renewal->last_renewed <= ticks(parts_.job.membership.lease_ttl) / 6;
    if (is_new && is_fresh) run_->news().tell_renewed();
    if (const auto heard = run_->news().peer_renewed_at()) {
      renewal->peer_last_renewed = boot_now() - ticks(std::chrono::steady_clock::now() - *heard);
    }
  }
  if (std::holds_alternative<elastic::LeaveAsked>(event)) is_asked_to_leave_ = true;
  if (std::holds_alternative<elastic::Connected>(event)) clock_.connected(boot_now());
  if (const auto* ended = std::get_if<elastic::TrainingEnded>(&event)) on_training_ended(*ended);
  if (std::holds_alternative<elastic::FirstUpdate>(event)) on_first_update();
  step_agent(event);
}

void MemberLoop::step_agent(const AgentEvent& event) {
  // The store may have kept the loop waiting. Whether this worker is fenced must not be decided on old news.
  if (renewed_at_ > known_renewal_ && !std::holds_alternative<elastic::RenewalNews>(event)) {
    handle(elastic::RenewalNews{});
    if (end_) return;
  }
  elastic::Decision decision = agent_.step(event, view_.view(), boot_now());
  take_wake(decision.wake_at);
  for (const elastic::Effect& effect : decision.effects) {
    if (end_) return;
    if (const auto* send = std::get_if<elastic::Send>(&effect)) {
      step_agent(elastic::Replied{send->request, transact(send->txn)});
      continue;
    }
    std::visit(
        [this](const auto& one) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(one)>, elastic::Send>) carry_out(one);
        },
        effect);
  }
}

void MemberLoop::step_coordinator(const std::variant<elastic::Looked, elastic::Replied>& event) {
  if (end_) return;
  elastic::Decision decision = coordinator_.step(event, view_.view(), boot_now(), parts_.progress.now().window_time);
  take_wake(decision.wake_at);
  for (const elastic::Effect& effect : decision.effects) {
    if (const auto* send = std::get_if<elastic::Send>(&effect)) {
      step_coordinator(elastic::Replied{send->request, transact(send->txn)});
    } else if (const auto* note = std::get_if<elastic::Note>(&effect)) {
      carry_out(*note);
    } else if (const auto* again = std::get_if<elastic::LookAgain>(&effect)) {
      carry_out(*again);
    }
  }
}

// A group that has lost nobody stops inside its window, for which the leader waits as long; but only a death that it
// has seen makes it stop.
Tick MemberLoop::group_limit() const {
  return run_ && run_->has_lost_a_peer() ? std::max(kGroupLimit, parts_.progress.now().window_time) : kGroupLimit;
}

// They are evicted at once, also while this worker's group is about to stop by itself.
void MemberLoop::tell_of_dead(PeerLines& lines) {
  const elastic::Attempt attempt = lines.attempt();
  for (const WorkerId& id : lines.newly_dead()) {
    if (!end_) step_agent(elastic::PeerDied{attempt, id});
  }
}

void MemberLoop::watch_old_lines(Tick now) {
  if (!old_lines_) return;
  tell_of_dead(*old_lines_);
  if (old_lines_->is_over(now)) {
    old_lines_.reset();
  } else {
    take_wake(now + PeerLines::kLookEvery);
  }
}

void MemberLoop::time_generation(Tick now) {
  const elastic::Revision opened = view_.view().modified(parts_.keys.generation());
  const elastic::KeyValue* item = view_.view().find(parts_.keys.generation());
  if (opened == std::exchange(generation_seen_, opened) || item == nullptr) return;
  const auto record = elastic::parse_generation(item->value);
  const bool works =
      record && std::ranges::find(record->roster.plan.workers, self_) != record->roster.plan.workers.end();
  clock_.seen(now, std::exchange(stands_by_, !works));
}

// After the agent, which knows better why a job that was removed is gone, and before anything is decided by what was
// changed.
void MemberLoop::look_for_tampering(Tick now) {
  if (end_) return;
  for (const std::string& event : forgeries_.look(view_.view(), now)) parts_.log(event);
  if (const Status status = parts_.high_water.look(view_.view(), parts_.keys); !status) {
    end_ = End{std::nullopt, status.error()};
  }
}

void MemberLoop::take_wake(std::optional<Tick> wake) {
  if (wake && (!wake_ || *wake < *wake_)) wake_ = wake;
}

Result<elastic::TxnReply> MemberLoop::transact(const elastic::Txn& txn) {
  auto reply = parts_.kv.transact(txn, kCallDeadline);
  if (!reply || !reply->succeeded) view_.distrust();
  return reply;
}

void MemberLoop::look_after_checkpoints() {
  if (end_) return;
  const elastic::View& view = view_.view();
  const Status looked = commits_.look(view, coordinator_.leads(view) ? view.created(parts_.keys.leader()) : 0);
  if (!looked) {
    end_ = End{std::nullopt, looked.error()};
    return;
  }
  if (commits_.is_busy()) take_wake(boot_now() + kTicksPerSecond / 50);
  if (!run_) return;
  if (const elastic::Revision moved = view.modified(parts_.keys.head()); moved > head_seen_) {
    head_seen_ = moved;
    if (const auto newest = head()) run_->take({newest->checkpoint, trainer::Verdict::Kind::kCommitted});
  }
  const elastic::KeyValue* abandoned = view.find(parts_.keys.abandoned_save());
  if (abandoned == nullptr || abandoned->modified <= abandoned_seen_) return;
  abandoned_seen_ = abandoned->modified;
  const std::string_view said = abandoned->value;
  const auto name = storage::parse_checkpoint_name(said.substr(0, said.find(' ')));
  if (!name) return;
  const bool is_unknown = said.ends_with(" unknown");
  run_->take({*name, is_unknown ? trainer::Verdict::Kind::kUnknown : trainer::Verdict::Kind::kAbandoned});
}

std::optional<storage::Head> MemberLoop::head() const {
  const elastic::KeyValue* item = view_.view().find(parts_.keys.head());
  if (item == nullptr) return std::nullopt;
  const storage::CatalogPorts ports = parts_.checkpoints.ports();
  const auto record = elastic::parse_head_record(item->value);
  if (!record) return std::nullopt;
  auto head = stored_head(*record, ports.documents, ports.seal);
  return head ? std::optional(std::move(head).value()) : std::nullopt;
}

}  // namespace everstep::launcher
