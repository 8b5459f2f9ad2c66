#include "elastic/sim/member_loop.h"

#include <algorithm>
#include <utility>

#include "elastic/sim/plans.h"
#include "elastic/sim/process.h"
#include "elastic/sim/world.h"

namespace everstep::elastic::sim {
namespace {

constexpr Tick kCallDeadline = kSecond;
constexpr Tick kGrantDeadline = 5 * kSecond;
constexpr Tick kRenewDeadline = kSecond / 2;
constexpr Tick kListEvery = 10 * kSecond;
constexpr Tick kLongestSleep = kSecond / 2;

bool is_stop(const Effect& effect) {
  return std::holds_alternative<StopAtWindow>(effect) || std::holds_alternative<PromiseRound>(effect) ||
         std::holds_alternative<StopAtRound>(effect);
}

}  // namespace

MemberLoop::MemberLoop(Process& process, WorkerId id)
    : process_(process), id_(id), connector_(*this), committer_(*this) {}

MemberLoop::~MemberLoop() = default;

void MemberLoop::later(Tick delay, std::function<void()> action) {
  process_.later(delay, [weak = weak_from_this(), action = std::move(action)] {
    const auto self = weak.lock();
    if (self && !self->is_over_) action();
  });
}

void MemberLoop::begin() {
  process_.world().enter_address(id_, process_.number());
  const Tick asked = process_.now();
  process_.world().store.grant(process_, process_.world().job.lease_ttl, kGrantDeadline,
                               [weak = weak_from_this(), asked](const Result<LeaseId>& lease) {
                                 const auto self = weak.lock();
                                 if (!self || self->is_over_) return;
                                 if (lease) return self->join(*lease, asked);
                                 if (lease.error().code == ErrorCode::kDataLoss) {
                                   return self->carry_out(Exit{lease.error()});
                                 }
                                 self->later(kSecond, [self = self.get()] { self->begin(); });
                               });
}

void MemberLoop::join(LeaseId lease, Tick granted) {
  lease_ = lease;
  last_renewed_ = granted;
  agent_.emplace(agent_options());
  coordinator_.emplace(coordinator_options());
  process_.world().store.watch(process_, weak_from_this());
  renew_in(process_.world().job.lease_ttl / 3);
  mailbox_.push_front(Warmed{});
  poke();
}

AgentOptions MemberLoop::agent_options() const {
  World& world = process_.world();
  AgentOptions options{world.keys, {}, process_.spec, lease_, world.job.lease_ttl, 6 * world.job.lease_ttl};
  options.group_limit = [] { return 3 * kSecond / 2; };
  options.self.id = id_;
  options.self.name = process_.name();
  options.self.host = process_.host();
  options.self.address = process_.name() + ":" + std::to_string(process_.life());  // a port of its own
  return options;
}

CoordinatorOptions MemberLoop::coordinator_options() const {
  World& world = process_.world();
  CoordinatorOptions options{.keys = world.keys, .self = id_, .first_generation = {}, .plan = {}, .nonce = {}};
  options.lease = lease_;
  options.first_generation = world.job.first_generation;
  options.min_workers = world.job.min_workers;
  options.expected_workers = world.job.expected_workers;
  options.join_debounce = 500 * kMillisecond;
  options.join_interval = 5 * kSecond;
  options.death_debounce = 50 * kMillisecond;
  options.prepare_limit = 10 * kSecond;
  options.held_limit = 2 * kSecond;
  options.plan = [&job = world.job](const auto& workers, const auto* previous) {
    return plan_for(workers, previous, job.redundancy, job.schedule);
  };
  options.nonce = [&world] { return static_cast<std::uint32_t>(world.dice().bits()); };
  return options;
}

std::string MemberLoop::state() const {
  if (!agent_) return "waits for a lease";
  return "is " + agent_->state() + (run_ ? ", " + run_->state() : "") + "; as coordinator: " + coordinator_->state() +
         (is_waiting_ ? "; waits for the store" : "");
}

// ---- the loop ----

void MemberLoop::tell(AgentEvent event) {
  if (is_over_) return;
  mailbox_.push_back(std::move(event));
  poke();
}

void MemberLoop::on_events(const std::vector<WatchEvent>& events) {
  if (is_over_) return;
  events_.insert(events_.end(), events.begin(), events.end());
  poke();
}

void MemberLoop::on_gap() {
  if (is_over_) return;
  has_gap_ = true;
  poke();
}

void MemberLoop::poke() {
  if (agent_ && !is_busy_) iterate();
}

void MemberLoop::iterate() {
  const auto self = shared_from_this();  // it may end on the way
  is_busy_ = true;
  std::optional<AgentEvent> message;
  if (!mailbox_.empty()) {
    message = std::move(mailbox_.front());
    mailbox_.pop_front();
  }
  const bool is_due = wake_ && process_.now() >= *wake_;
  if (is_due) wake_.reset();
  const bool must_look = is_due || message;
  has_changed_ = false;
  tasks_.emplace_back([this] { refresh(); });
  if (message) tasks_.emplace_back([this, message] { handle(*message); });
  tasks_.emplace_back([this, must_look] {
    if (!must_look && !has_changed_) return;
    do_next({[this] { step_agent(Looked{}); }, [this] { step_coordinator(Looked{}); }});
  });
  tasks_.emplace_back([this] { look_after_checkpoints(); });
  tasks_.emplace_back([this] {
    is_busy_ = false;
    const bool has_more = !mailbox_.empty() || !events_.empty();
    Tick sleep = has_more ? 0 : kLongestSleep;
    if (wake_) sleep = std::clamp<Tick>(*wake_ - process_.now(), 0, sleep);
    later(std::max<Tick>(sleep, 1), [this, timer = ++timers_] {
      if (timer == timers_) poke();
    });
  });
  run_tasks();
}

void MemberLoop::run_tasks() {
  while (!tasks_.empty() && !is_waiting_ && !is_over_) {
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    task();
  }
}

void MemberLoop::do_next(std::vector<std::function<void()>> tasks) {
  tasks_.insert(tasks_.begin(), std::make_move_iterator(tasks.begin()), std::make_move_iterator(tasks.end()));
}

void MemberLoop::transact(const Txn& txn, std::function<void(const Result<TxnReply>&)> then) {
  is_waiting_ = true;
  process_.world().store.transact(process_, txn, kCallDeadline,
                                  [weak = weak_from_this(), then = std::move(then)](const Result<TxnReply>& reply) {
                                    const auto self = weak.lock();
                                    if (!self || self->is_over_) return;
                                    self->is_waiting_ = false;
                                    if (!reply || !reply->succeeded) self->has_gap_ = true;
                                    then(reply);
                                    self->run_tasks();
                                  });
}

void MemberLoop::refresh() {
  has_changed_ = view_.apply(std::exchange(events_, {}));
  const bool lists_again = process_.world().mutation != Mutation::kNeverListAgain || !has_listed_;
  if (!lists_again || (!has_gap_ && process_.now() - listed_ < kListEvery)) return;
  has_gap_ = false;
  transact({{}, {list(process_.world().keys.live())}}, [this](const Result<TxnReply>& reply) {
    if (!reply) {
      has_gap_ = true;
      if (reply.error().code == ErrorCode::kDataLoss) carry_out(Exit{reply.error()});
      return;
    }
    listed_ = process_.now();
    has_listed_ = true;
    has_changed_ = view_.replace(reply->reads.front(), reply->revision) || has_changed_;
  });
}

void MemberLoop::handle(AgentEvent event) {
  if (auto* renewal = std::get_if<RenewalNews>(&event)) renewal->peer_last_renewed = peer_renewed_;
  if (const auto* ended = std::get_if<TrainingEnded>(&event)) on_training_ended(*ended);
  step_agent(event);
}

void MemberLoop::step_agent(const AgentEvent& event) { do_effects(agent_->step(event, view_, process_.now()), true); }

void MemberLoop::step_coordinator(const std::variant<Looked, Replied>& event) {
  const Tick window = run_ ? run_->window_time() : 0;
  do_effects(coordinator_->step(event, view_, process_.now(), window), false);
}

void MemberLoop::do_effects(const Decision& decision, bool by_agent) {
  take_wake(decision.wake_at);
  if (!decision.reason.empty()) {
    const bool stops = std::any_of(decision.effects.begin(), decision.effects.end(), is_stop);
    const std::string what = by_agent ? (stops ? "is asked to stop: " : "") : "as leader: ";
    process_.world().tell(process_.name(), [&] { return what + decision.reason; });
  }
  std::vector<std::function<void()>> tasks;
  for (const Effect& effect : decision.effects) {
    const auto* send = std::get_if<Send>(&effect);
    if (send != nullptr && !by_agent) {
      tasks.emplace_back([this, send = *send] {
        transact(send.txn, [this, request = send.request](const Result<TxnReply>& reply) {
          step_coordinator(Replied{request, reply});
        });
        process_.world().traps.reached(Point::kLeading, process_);
      });
    } else {
      tasks.emplace_back([this, effect] { std::visit([this](const auto& one) { carry_out(one); }, effect); });
    }
  }
  do_next(std::move(tasks));
}

void MemberLoop::take_wake(std::optional<Tick> wake) {
  if (wake && (!wake_ || *wake < *wake_)) wake_ = wake;
}

std::optional<HeadDocument> MemberLoop::head() const {
  const KeyValue* item = view_.find(process_.world().keys.head());
  if (item == nullptr) return std::nullopt;
  const auto record = parse_head_record(item->value);
  return record ? parse_head_document(record->document) : std::nullopt;
}

void MemberLoop::look_after_checkpoints() {
  const Keys& keys = process_.world().keys;
  committer_.look(view_, coordinator_->leads(view_) ? view_.created(keys.leader()) : 0);
  if (!run_) return;
  if (const Revision moved = view_.modified(keys.head()); moved > head_seen_) {
    head_seen_ = moved;
    if (const auto newest = head()) run_->take_verdict(newest->name, true);
  }
  const KeyValue* abandoned = view_.find(keys.abandoned_save());
  if (abandoned == nullptr || abandoned->modified <= abandoned_seen_) return;
  abandoned_seen_ = abandoned->modified;
  if (const auto name = parse_checkpoint_name(abandoned->value)) run_->take_verdict(*name, false);
}

// ---- the lease ----

void MemberLoop::renew_in(Tick delay) {
  later(delay, [this] { renew(); });
}

void MemberLoop::renew() {
  const Tick ttl = process_.world().job.lease_ttl;
  const Tick soon = std::min(ttl / 12, kSecond / 5);
  if (!process_.may_renew()) {
    tell(RenewalNews{last_renewed_, std::nullopt});
    return renew_in(soon);
  }
  const Tick asked = process_.now();
  process_.world().store.renew(process_, lease_, kRenewDeadline,
                               [this, weak = weak_from_this(), asked, ttl, soon](const Status& renewed) {
                                 const auto self = weak.lock();
                                 if (!self || is_over_) return;
                                 if (renewed) {
                                   last_renewed_ = asked;
                                   if (run_) run_->tell_renewed();
                                   tell(RenewalNews{last_renewed_, std::nullopt});
                                   return renew_in(ttl / 3);
                                 }
                                 if (renewed.error().code == ErrorCode::kNotFound) return tell(LeaseLost{});
                                 tell(RenewalNews{last_renewed_, std::nullopt});
                                 renew_in(soon);
                               });
}

}  // namespace everstep::elastic::sim
