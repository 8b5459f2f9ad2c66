#include "elastic/brain/coordinator.h"

#include <algorithm>
#include <utility>

#include "elastic/brain/worker_agent.h"

namespace everstep::elastic {
namespace {

constexpr Tick kCatchUpLimit = kTicksPerSecond;       // then act on the view as it is: a compare will tell
constexpr Tick kTrustIntervals = 20;                  // that a spare's speed is believed: ten minutes as a rule
constexpr std::size_t kMostCompared = 100;            // members in one transaction, changed ones first
constexpr Tick kStartPatience = 5 * kTicksPerSecond;  // for workers that are started together with the job

// Ascending.
std::vector<WorkerId> holders_of(const OriginChoice& choice, const std::map<WorkerId, HeldRecord>& held) {
  std::vector<WorkerId> ids;
  if (choice.origin.kind == Origin::Kind::kMemory) {
    for (const auto& [id, record] : held) {
      const bool holds_it = record.position == choice.origin.position && record.of == choice.from->attempt.generation;
      if (holds_it && has(choice.from->plan.workers, id)) ids.push_back(id);
    }
  }
  if (choice.origin.kind == Origin::Kind::kSums) {
    ids = scheduler::plan_of_group(choice.from->plan, choice.origin.group).workers;
    std::sort(ids.begin(), ids.end());
  }
  for (const CopyHolder& holder : choice.holders) ids.push_back(holder.id);
  return ids;
}

}  // namespace

Coordinator::Coordinator(CoordinatorOptions options) : options_(std::move(options)), speeds_(trust_in_speeds()) {}

// Also where newcomers need not wait at all.
Tick Coordinator::trust_in_speeds() const {
  return kTrustIntervals * std::max(options_.join_interval, kTicksPerSecond);
}

Decision Coordinator::step(const std::variant<Looked, Replied>& event, const View& view, Tick now, Tick window_time) {
  decision_ = {};
  learn_names(view);
  if (const auto* reply = std::get_if<Replied>(&event)) on_reply(*reply, now);
  if (std::exchange(was_refused_, false)) {
    wake(now);  // with a view that was read again: this one may have missed something
  } else if (pending_) {
    if (pending_->retry_at && now >= *pending_->retry_at) {
      pending_->retry_at.reset();
      decision_.effects.emplace_back(Send{pending_->request, pending_->txn});
    } else if (pending_->retry_at) {
      wake(*pending_->retry_at);
    }
  } else if (view.find(options_.keys.finished()) != nullptr) {
    state_ = "finished";
  } else if (is_caught_up(view, now)) {
    if (!read_leader(view, options_.keys)) {
      try_to_lead(view, now);
    } else if (!leads(view)) {
      orphaned_since_.reset();
      forget();
    } else {
      vacant_since_.reset();
      orphaned_since_.reset();
      const Situation seen = read_situation(view, options_.keys);
      if (may_decide(seen)) reconcile(seen, now, window_time);
    }
  }
  return std::exchange(decision_, {});
}

void Coordinator::on_reply(const Replied& event, Tick now) {
  if (!pending_ || pending_->request != event.request) return;
  if (!event.reply) {
    const ErrorCode code = event.reply.error().code;
    const bool unknown = code == ErrorCode::kUnavailable || code == ErrorCode::kDeadlineExceeded;
    if (unknown) {
      pending_->retry_at = now + kRetryAfter;
      pending_->went_unanswered = true;
    } else {
      pending_.reset();  // the lease is gone or the store is not the one it was: the agent finds out as well
    }
    return;
  }
  known_ = std::max(known_, event.reply->revision);
  known_since_ = now;
  if (pending_->went_unanswered && broken_) {
    broken_->since = now;
    broken_->has_asked = broken_->has_looked = false;
  }
  was_refused_ = !event.reply->succeeded;
  if (event.reply->succeeded) {
    for (std::string& told : pending_->events) decision_.effects.emplace_back(Note{std::move(told)});
  }
  pending_.reset();
}

bool Coordinator::is_caught_up(const View& view, Tick now) {
  if (view.revision() >= known_ || now >= known_since_ + kCatchUpLimit) return true;
  wake(known_since_ + kCatchUpLimit);
  return false;
}

void Coordinator::forget() {
  joined_at_.clear();
  leaving_since_.clear();
  set_back_.clear();
  last_members_.clear();
  deaths_.clear();
  shut_out_.clear();
  unreached_.clear();
  judged_.clear();
  watched_.reset();
  broken_.reset();
  proposed_.reset();
  speeds_ = SpeedBook(trust_in_speeds());
  planned_for_.clear();
  fruitless_ = 0;
  said_waiting_ = false;
  no_plan_.clear();
  state_ = "following";
}

void Coordinator::track(const Situation& seen, Tick now) {
  for (const auto& [id, member] : seen.members) {
    if (member.record.state == MemberState::kReady) joined_at_.try_emplace(id, now);
    if (member.record.state == MemberState::kLeaving) leaving_since_.try_emplace(id, now);
  }
  track_losses(seen, now);
  track_quarantines(seen, now);
  if (options_.rebalances) speeds_.look(seen, now);
  const auto attempt = seen.generation ? std::optional(seen.generation->roster.attempt) : std::nullopt;
  if (watched_ == attempt) return;
  watched_ = attempt;
  watched_since_ = now;
  broken_.reset();
  judged_.clear();
}

void Coordinator::reconcile(const Situation& seen, Tick now, Tick window_time) {
  track(seen, now);
  if (write_quarantine(seen, now) || end_quarantine(seen, now)) return;
  for (const auto& [id, held] : seen.held) {
    if (!held.finished) continue;
    Txn txn = as_leader(seen);
    txn.then = {put(options_.keys.finished(), "finished by " + to_string(id) + "\n")};
    return send(std::move(txn), "the job is finished");
  }
  if (!seen.ready.empty()) fruitless_ = 0;
  const bool nobody_left = seen.live_workers().empty();
  if (!seen.generation) return start(seen, now);
  if (seen.drain && seen.drain->ends_job && !(nobody_left && has_newcomers(seen))) {
    state_ = "stopping";
    return;
  }
  if (nobody_left) return start(seen, now);
  if (evict_guilty(seen, now)) return;
  if (is_broken(seen)) return recover(seen, now, window_time);
  if (seen.drain) return await_drain(seen, now);
  if (seen.proposal) return await_prepared(seen, now, window_time);
  consider_change(seen, now, window_time);
}

std::vector<WorkerId> Coordinator::eligible(const Situation& seen, Tick now) const {
  std::vector<WorkerId> ids;
  for (const auto& [id, member] : seen.members) {
    const bool can_work = member.record.state == MemberState::kReady && !judged_.contains(id);
    if (can_work && !is_shut_out(seen, member, now)) ids.push_back(id);
  }
  return ids;
}

bool Coordinator::waits_for_more(std::size_t workers) {
  const auto wanted = static_cast<std::size_t>(std::max(options_.min_workers, 1));
  if (workers >= wanted) {
    said_waiting_ = false;
    return false;
  }
  state_ = "waiting for " + std::to_string(wanted - workers) + " more workers";
  if (!std::exchange(said_waiting_, true)) {
    note(LogLine("waiting").add("workers", workers).add("wanted", wanted));
    decision_.reason = state_;
  }
  return true;
}

// Since the job was told to end: whoever starts it again.
bool Coordinator::has_newcomers(const Situation& seen) const {
  return std::any_of(seen.members.begin(), seen.members.end(),
                     [&](const auto& member) { return member.second.created > seen.drain_modified; });
}

// While nobody trains there is nothing to save, and those who wait may go.
void Coordinator::stop_if_asked(const Situation& seen) {
  if (seen.stop_asked && seen.generation) drain(seen, {.ends_job = true, .reason = "the job was asked to stop"});
}

// Nobody trains, and nobody has anything in memory.
void Coordinator::start(const Situation& seen, Tick now) {
  const std::vector<WorkerId> workers = eligible(seen, now);
  wake_for_quarantines(now);
  if (waits_for_more(workers.size())) return stop_if_asked(seen);
  state_ = "starting";
  Tick newest = 0;
  for (const WorkerId& id : workers) newest = std::max(newest, joined_at_.at(id));
  const auto expected = static_cast<std::size_t>(options_.expected_workers);
  const bool is_first = expected > 0 && !seen.generation;
  const bool complete = is_first && workers.size() >= expected;
  const Tick patience = is_first ? std::max(options_.join_debounce, kStartPatience) : options_.join_debounce;
  if (!complete && now < newest + patience) return wake(newest + patience);
  if (pauses_after_failures(now)) return;
  open_anew(seen, now, seen.generation ? "nobody was left" : "the job starts");
}

Txn Coordinator::as_leader(const Situation& seen) const {
  return {{created_at(options_.keys.leader(), seen.leader_created),
           modified_at(options_.keys.generation(), seen.generation_modified)},
          {}};
}

void Coordinator::send(Txn txn, const std::string& what) {
  EVERSTEP_CHECK(txn.compares.size() <= kMostOps && txn.then.size() <= kMostOps, "too large a transaction");
  pending_ = Pending{++requests_, std::move(txn), what};
  decision_.effects.emplace_back(Send{pending_->request, pending_->txn});
  decision_.reason = what;
}

void Coordinator::wake(Tick at) {
  if (!decision_.wake_at || *decision_.wake_at > at) decision_.wake_at = at;
}

// Also while another leads: it may be the one whose loss is to be told.
void Coordinator::learn_names(const View& view) {
  for (const KeyValue* item : view.below(options_.keys.members())) {
    if (names_.contains(item->key)) continue;
    const auto member = parse_member(item->value);
    if (member) names_.emplace(item->key, member->name);
  }
}

std::string Coordinator::name_of(const WorkerId& id) const {
  const auto found = names_.find(options_.keys.member(id));
  return found == names_.end() || found->second.empty() ? to_string(id).substr(0, 8) : found->second;
}

std::set<WorkerId> Coordinator::living(const Situation& seen) const {
  std::set<WorkerId> ids;
  for (const auto& [id, member] : seen.members) {
    if (!judged_.contains(id)) ids.insert(id);
  }
  return ids;
}

std::map<WorkerId, HeldRecord> Coordinator::held_by_the_living(const Situation& seen) const {
  std::map<WorkerId, HeldRecord> held;
  for (const auto& [id, record] : seen.held) {
    if (seen.has(id) && !judged_.contains(id)) held.emplace(id, record);
  }
  return held;
}

std::optional<Coordinator::Change> Coordinator::planned(const Situation& seen, const std::vector<WorkerId>& workers) {
  const scheduler::Plan* previous = seen.generation ? &seen.generation->roster.plan : nullptr;
  auto plan = options_.plan(infos_of(seen, workers), previous);
  if (!plan) {
    state_ = "no plan for " + std::to_string(workers.size()) + " workers: " + plan.error().message;
    if (no_plan_ != plan.error().message) {
      no_plan_ = plan.error().message;
      note(LogLine("no_plan").add("error", plan.error().line()));
    }
    return std::nullopt;
  }
  no_plan_.clear();
  return Change{*std::move(plan), change_text(seen, workers)};
}

// Who came and who went, for people.
std::string Coordinator::change_text(const Situation& seen, const std::vector<WorkerId>& next) const {
  std::string text;
  const auto tell = [&](const WorkerId& id, const std::string& what) {
    text += (text.empty() ? "" : ", ") + name_of(id) + what;
  };
  for (const WorkerId& id : next) {
    if (!seen.generation || !seen.generation->roster.names(id)) tell(id, " joined");
  }
  if (!seen.generation) return text;
  for (const WorkerId& id : seen.generation->roster.plan.workers) {
    if (!has(next, id)) tell(id, seen.is_leaving(id) ? " left" : " was lost");
  }
  return text;
}

void Coordinator::open_anew(const Situation& seen, Tick now, const std::string& reason) {
  auto change = unchanged_plan(seen, now);
  if (!change) {
    change = planned(seen, those_to_go_on(seen, now));
    if (!change) return stop_if_asked(seen);
    planned_for_ = speeds_.slow();
  }
  const OriginChoice choice = choose_origin(seen.generation, held_by_the_living(seen), seen.head, living(seen));
  RosterRecord roster;
  roster.attempt = {seen.generation ? seen.generation->roster.attempt.generation.next() : options_.first_generation,
                    options_.nonce()};
  roster.plan = change->plan;
  for (const WorkerId& id : holders_of(choice, held_by_the_living(seen))) {
    if (!has(roster.plan.workers, id)) roster.donors.push_back(id);
  }
  if (seen.generation && seen.ready.empty()) ++fruitless_;
  open(seen, std::move(roster), choice, reason + (change->reason.empty() ? "" : ": " + change->reason));
}

void Coordinator::open(const Situation& seen, RosterRecord roster, const OriginChoice& choice,
                       const std::string& reason) {
  const Keys& keys = options_.keys;
  Txn txn = as_leader(seen);
  txn.compares.push_back(modified_at(keys.head(), seen.head_modified));
  std::vector<WorkerId> named = roster.connected();
  const auto is_new = [&](const WorkerId& id) { return !seen.generation || !seen.generation->roster.names(id); };
  std::stable_partition(named.begin(), named.end(), is_new);
  if (named.size() > kMostCompared) named.resize(kMostCompared);
  for (const WorkerId& id : named) txn.compares.push_back(created_at(keys.member(id), seen.members.at(id).created));
  // Whoever has spoken meanwhile may have something better to start from.
  for (const WorkerId& id : silent_survivors(seen)) {
    if (txn.compares.size() == kMostOps) break;
    txn.compares.push_back(is_absent(keys.held(seen.generation->roster.attempt, id)));
  }
  const std::string what = "open generation " + std::to_string(roster.attempt.generation.value) + " (" + reason + ")";
  GenerationRecord record{std::move(roster), options_.self, choice.origin, choice.from, reason, choice.holders};
  hand_on_anomalies(seen, record);
  if (seen.generation) {
    const bool was_stopped = seen.drain && seen.drain->ends_job;
    record.heeds_from = was_stopped ? record.roster.attempt.generation : seen.generation->heeds_from;
  }
  const std::string text = to_text(record);
  txn.then = {put(keys.generation(), text),
              put(keys.past_generation(record.roster.attempt.generation), text),
              remove(keys.drain()),
              remove(keys.proposal()),
              remove_prefix(keys.all_suspects()),
              remove_prefix(keys.all_prepared()),
              remove_prefix(keys.all_promises()),
              remove_prefix(keys.all_held()),
              remove_prefix(keys.all_ready()),
              remove_prefix(keys.acks())};
  const std::int64_t forgotten = record.roster.attempt.generation.value - kKeptHistory;
  if (forgotten > 0) txn.then.push_back(remove(keys.past_generation({forgotten})));
  send(std::move(txn), what);
}

}  // namespace everstep::elastic
