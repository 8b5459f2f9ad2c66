#include "elastic/brain/worker_agent.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log_line.h"

namespace everstep::elastic {
namespace {

constexpr Tick kTicksPerMillisecond = kTicksPerSecond / 1000;

}  // namespace

WorkerAgent::WorkerAgent(AgentOptions options) : options_(std::move(options)) {}

bool WorkerAgent::Part::has_written(Write kind) const {
  return std::find(written.begin(), written.end(), kind) != written.end();
}

std::string_view WorkerAgent::role_text(Role role) {
  switch (role) {
    case Role::kNone:
      return "none";
    case Role::kSpare:
      return "spare";
    case Role::kDonor:
      return "donor";
    case Role::kWorker:
      return "worker";
  }
  EVERSTEP_CHECK(false, "a role that is none");
}

Decision WorkerAgent::step(const AgentEvent& event, const View& view, Tick now) {
  decision_ = {};
  if (gone_) return {};
  std::visit([&](const auto& happened) { take(happened, now); }, event);
  if (!gone_) look(view, now);
  if (!gone_) write_next(view, now);
  return std::exchange(decision_, {});
}

void WorkerAgent::take(const Looked& /*event*/, Tick /*now*/) {}

void WorkerAgent::take(const Replied& event, Tick now) {
  if (!pending_ || pending_->request != event.request) return;
  if (!event.reply) {
    const Error& error = event.reply.error();
    if (error.code == ErrorCode::kNotFound) return rejoin("the lease is gone");
    if (error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kDataLoss) return leave(error);
    pending_->retry_at = now + kRetryAfter;  // perhaps executed: the same again finds out
    return;
  }
  const Pending write = *std::exchange(pending_, std::nullopt);
  if (event.reply->succeeded) {
    on_written(write, *event.reply);
  } else {
    on_refused(write, *event.reply);
  }
}

void WorkerAgent::take(const Connected& event, Tick /*now*/) {
  const auto link = links_.find(event.attempt);
  if (link != links_.end() && link->second == Link::kConnecting) link->second = Link::kUp;
}

void WorkerAgent::take(const ConnectFailed& event, Tick /*now*/) {
  const auto link = links_.find(event.attempt);
  if (link == links_.end()) return;
  link->second = Link::kFailed;
  link_errors_[event.attempt] = event.error.message;
  LogLine note("connect_failed");
  note.add("generation", event.attempt.generation.value).add("reason", event.error.line());
  decide(Note{note.text()}, "cannot connect: " + event.error.message);
  if (!part_ || part_->record.roster.attempt != event.attempt || part_->ended) return;
  part_->ended = true;
  part_->held = in_memory_.value_or(HeldRecord{});
  if (event.lost) note_loss({*event.lost, event.lost_is_dead, event.error.message});
}

void WorkerAgent::take(const Promised& event, Tick /*now*/) {
  if (part_) part_->promise = event.round;
}

void WorkerAgent::take(const FirstUpdate& event, Tick /*now*/) {
  if (!part_ || part_->record.roster.attempt != event.attempt || part_->first_update) return;
  part_->first_update = true;
  in_memory_.reset();
  decide(ReleaseOrigin{}, "the first update is made");
}

void WorkerAgent::take(const TrainingEnded& event, Tick /*now*/) {
  if (!part_ || part_->record.roster.attempt != event.attempt || !part_->is_running()) return;
  if (event.origin_is_damaged || event.is_faulty || event.is_hopeless) return leave(event.error);
  part_->ended = true;
  part_->handed_over = event.how == TrainingEnded::How::kHandedOver;
  part_->origin_is_kept = part_->handed_over;
  if (part_->handed_over) return;
  remember(event.held);
  if (event.how == TrainingEnded::How::kBroken && event.lost && !part_->aborted) {
    const std::string why = event.error ? event.error->message : "its connection closed";
    note_loss({*event.lost, event.lost_is_dead, why});
  }
}

void WorkerAgent::take(const PeerDied& event, Tick /*now*/) {
  if (!part_ || part_->record.roster.attempt != event.attempt) return;
  note_loss({event.id, true, "its connection closed"});
}

// The first word of each.
void WorkerAgent::note_loss(Lost lost) {
  const bool is_known = std::ranges::any_of(part_->lost, [&](const Lost& known) { return known.id == lost.id; });
  if (!is_known) part_->lost.push_back(std::move(lost));
}

// Before the first update what was held before is as good as ever, but for sums of a window that has a gradient which
// is no number.
void WorkerAgent::remember(HeldRecord held) {
  if (in_memory_) {
    const auto bad_window =
        held.anomaly ? std::optional(held.anomaly->window * part_->record.roster.plan.window) : std::nullopt;
    const auto& position = in_memory_->position;  // inside a window there are sums
    if (!held.position && !(bad_window && position && position->value > *bad_window)) {
      held.position = position;
      held.of = in_memory_->of;
    }
    const auto& sums = in_memory_->sums;
    if (!held.sums && !(bad_window && sums && sums->position.value == *bad_window)) held.sums = sums;
  }
  if (in_memory_ && part_->record.from) {
    // Older ones can be the origin of nothing that follows.
    std::copy_if(in_memory_->copies.begin(), in_memory_->copies.end(), std::back_inserter(held.copies),
                 [&](const HeldCopy& copy) { return copy.of == part_->record.from->attempt.generation; });
  }
  part_->held = held;
  held.anomaly.reset();  // is told once
  in_memory_.reset();
  if (held.has_anything()) in_memory_ = std::move(held);
}

void WorkerAgent::take(const LeaveAsked& event, Tick now) {
  if (leaving_ && (event.within_ms == 0 || leaving_->deadline)) return;
  leaving_ = {event.reason, event.within_ms, std::nullopt};
  if (event.within_ms > 0) leaving_->deadline = now + event.within_ms * kTicksPerMillisecond;
}

void WorkerAgent::take(const Warmed& /*event*/, Tick /*now*/) { warmed_ = true; }
void WorkerAgent::take(const LeaseLost& /*event*/, Tick /*now*/) { rejoin("the lease is lost"); }
void WorkerAgent::take(const RenewalNews& event, Tick /*now*/) { renewal_ = event; }

void WorkerAgent::look(const View& view, Tick now) {
  look_at_self(view, now);
  if (!gone_) look_at_renewals(now);
  if (!gone_ && registered_) look_at_generation(view);
  if (!gone_ && part_) look_at_peers(view, now);
  if (!gone_ && registered_) look_at_proposal(view);
  if (!gone_) begin_if_connected();
  if (!gone_ && part_) look_at_drain(view);
  if (!gone_) look_at_leaving(view, now);
}

void WorkerAgent::look_at_self(const View& view, Tick now) {
  if (view.find(options_.keys.finished()) != nullptr && !(part_ && part_->is_running())) return leave(std::nullopt);
  if (!registered_) return;
  if (const KeyValue* asked = view.find(options_.keys.drain_request(id()))) {
    if (const auto request = parse_request(asked->value)) take(LeaveAsked{request->reason, 0}, now);
  }
  const bool is_there = view.find(options_.keys.member(id())) != nullptr;
  if (seen_self_ && !is_there) return rejoin("evicted: its member key is gone");
  seen_self_ = seen_self_ || is_there;
}

void WorkerAgent::look_at_renewals(Tick now) {
  if (!renewal_) return;
  const Tick own = renewal_->last_renewed;
  const bool peers_renew = renewal_->peer_last_renewed && *renewal_->peer_last_renewed > own + options_.lease_ttl / 2;
  if (!peers_renew) outpaced_since_.reset();
  if (peers_renew && !outpaced_since_) outpaced_since_ = now;
  const Tick doubtful = own + options_.lease_ttl * 2 / 3;
  if (now < doubtful) return wake(doubtful);
  if (outpaced_since_) {
    // After an outage somebody is the first to reach the store again: this worker gets time to do so, too.
    const Tick fair = *outpaced_since_ + std::max(options_.lease_ttl / 6, kTicksPerSecond);
    return now >= fair ? rejoin("fenced: cannot renew the lease while others can") : wake(fair);
  }
  if (now >= own + options_.outage_limit) return rejoin("nobody could reach the store for too long");
  wake(own + options_.outage_limit);
}

void WorkerAgent::look_at_generation(const View& view) {
  const KeyValue* item = view.find(options_.keys.generation());
  if (item == nullptr || (part_ && item->modified <= part_->modified)) return;
  auto record = parse_generation(item->value);
  if (!record) return leave(record.error());
  if (part_ && record->roster.attempt.generation <= part_->record.roster.attempt.generation) return;
  if (part_ && part_->is_running()) {
    return break_off("generation " + std::to_string(record->roster.attempt.generation.value) + " is open");
  }
  obey(*std::move(record), item->modified);
}

void WorkerAgent::obey(GenerationRecord record, Revision modified) {
  const bool was_named = part_ && part_->role != Role::kNone;
  const RosterRecord& roster = record.roster;
  Role role = Role::kNone;
  if (has(roster.plan.spares, id())) role = Role::kSpare;
  if (has(roster.donors, id())) role = Role::kDonor;
  if (has(roster.plan.workers, id())) role = Role::kWorker;
  std::vector<Attempt> kept{roster.attempt};
  if (proposal_ && proposal_->attempt.generation > roster.attempt.generation) kept.push_back(proposal_->attempt);
  disconnect_all_but(kept);
  const std::string number = std::to_string(roster.attempt.generation.value);
  if (role == Role::kNone && leaving_) {
    return leave(Error{ErrorCode::kCancelled, "left as asked: " + leaving_->reason, {}});
  }
  if (role == Role::kNone && was_named) return rejoin("generation " + number + " goes on without this worker");
  Part part;
  part.record = std::move(record);
  part.modified = modified;
  part.role = role;
  part_ = std::move(part);
  decide(Note{LogLine("generation_obeyed").add("generation", number).add("role", role_text(role)).text()},
         "generation " + number + " is open");
  if (role == Role::kWorker || role == Role::kDonor) connect(part_->record.roster);
}

void WorkerAgent::look_at_proposal(const View& view) {
  const KeyValue* item = view.find(options_.keys.proposal());
  std::vector<Attempt> kept;
  if (part_) kept.push_back(part_->record.roster.attempt);
  if (item == nullptr) {
    proposal_.reset();
    proposal_modified_ = 0;
    return disconnect_all_but(kept);
  }
  if (item->modified != proposal_modified_) {
    const auto roster = parse_roster(item->value);
    if (!roster) return leave(roster.error());
    proposal_modified_ = item->modified;
    proposal_ = *roster;
  }
  const Generation now = part_ ? part_->record.roster.attempt.generation : Generation{};
  if (proposal_->attempt.generation <= now) return disconnect_all_but(kept);
  kept.push_back(proposal_->attempt);
  disconnect_all_but(kept);
  if (has(proposal_->connected(), id())) connect(*proposal_);
}

std::optional<DrainRecord> WorkerAgent::drain_of_part(const View& view) const {
  const KeyValue* item = view.find(options_.keys.drain());
  if (item == nullptr) return std::nullopt;
  const auto drain = parse_drain(item->value);
  if (!drain || drain->attempt != part_->record.roster.attempt) return std::nullopt;
  return *drain;
}

void WorkerAgent::look_at_drain(const View& view) {
  const auto drain = drain_of_part(view);
  if (!drain) return;
  const bool stands_by = part_->role == Role::kNone || part_->role == Role::kSpare || part_->handed_over;
  const bool has_stopped =
      stands_by ? is_stopped_for_spectators(view, *drain) : part_->ended && part_->has_written(Write::kHeld);
  if (drain->ends_job && has_stopped) {
    return leave(Error{ErrorCode::kCancelled, "the job was stopped: " + drain->reason, {}});
  }
  const Revision modified = view.modified(options_.keys.drain());
  if (!part_->is_running() || part_->role != Role::kWorker || part_->drain_obeyed == modified) return;
  part_->drain_obeyed = modified;
  if (!drain->inside_window) return decide(StopAtWindow{drain->saves || drain->ends_job}, drain->reason);
  if (drain->stop_round) return decide(StopAtRound{*drain->stop_round}, drain->reason);
  if (!std::exchange(part_->asked_promise, true)) decide(PromiseRound{}, drain->reason);
}

// Those who only stand by go last: one of them may lead. Whoever came after the stop was asked for is there to go on,
// unless it was only cut off when it was.
bool WorkerAgent::is_stopped_for_spectators(const View& view, const DrainRecord& drain) const {
  const bool is_late = member_created_ > view.modified(options_.keys.drain());  // the view may not show it yet
  if (is_late && !(drain.asked && options_.returns)) return false;
  const RosterRecord& roster = part_->record.roster;
  return std::all_of(roster.plan.workers.begin(), roster.plan.workers.end(), [&](const WorkerId& worker) {
    const bool is_there = view.find(options_.keys.member(worker)) != nullptr;
    return !is_there || view.find(options_.keys.held(roster.attempt, worker)) != nullptr;
  });
}

void WorkerAgent::begin_if_connected() {
  if (!part_ || part_->begun || part_->ended) return;
  if (part_->role != Role::kWorker && part_->role != Role::kDonor) return;
  const auto link = links_.find(part_->record.roster.attempt);
  if (link == links_.end() || link->second != Link::kUp) return;
  part_->begun = true;
  decide(Begin{part_->record}, "everybody is connected");
}

void WorkerAgent::connect(const RosterRecord& roster) {
  const auto [link, is_new] = links_.try_emplace(roster.attempt, Link::kConnecting);
  if (is_new) return decide(Connect{roster}, "connecting for attempt " + to_string(roster.attempt));
  const bool is_open = part_ && part_->record.roster.attempt == roster.attempt;
  if (link->second != Link::kFailed || !is_open || part_->ended || part_->begun) return;
  part_->ended = true;
  part_->held = in_memory_.value_or(HeldRecord{});
}

void WorkerAgent::disconnect_all_but(const std::vector<Attempt>& kept) {
  const Generation present = part_ ? part_->record.roster.attempt.generation : Generation{};
  for (auto link = links_.begin(); link != links_.end();) {
    const Attempt attempt = link->first;
    const bool keeps = std::find(kept.begin(), kept.end(), attempt) != kept.end();
    if (!keeps) give_up(attempt);
    const bool is_past = !keeps && attempt.generation <= present;
    if (is_past) link_errors_.erase(attempt);
    link = is_past ? links_.erase(link) : std::next(link);
  }
}

// For good: peers may be connected to what is thrown away here, and would not notice a second try.
void WorkerAgent::give_up(const Attempt& attempt) {
  const auto link = links_.find(attempt);
  if (link == links_.end() || link->second == Link::kFailed) return;
  const bool in_use = part_ && part_->record.roster.attempt == attempt && part_->begun;
  if (!in_use) decide(Disconnect{attempt}, "attempt " + to_string(attempt) + " is given up");
  link->second = Link::kFailed;
  link_errors_[attempt] = "it was given up";
}

void WorkerAgent::break_off(const std::string& reason) {
  if (std::exchange(part_->aborted, true)) return;
  decide(Abort{reason}, reason);
}

void WorkerAgent::rejoin(const std::string& reason) {
  if (part_ && part_->is_running()) break_off(reason);
  gone_ = true;
  if (leaving_) return decide(Exit{Error{ErrorCode::kCancelled, "left as asked: " + leaving_->reason, {}}}, reason);
  decide(Note{LogLine("rejoin").add("worker", to_string(id())).add("reason", reason).text()}, reason);
  decide(Rejoin{reason, 0}, reason);
}

void WorkerAgent::leave(std::optional<Error> error) {
  gone_ = true;
  const std::string reason = error ? error->message : "the job is finished";
  decide(Exit{std::move(error)}, reason);
}

void WorkerAgent::decide(Effect effect, const std::string& reason) {
  decision_.effects.push_back(std::move(effect));
  decision_.reason = reason;
}

void WorkerAgent::wake(Tick at) {
  if (!decision_.wake_at || *decision_.wake_at > at) decision_.wake_at = at;
}

std::string WorkerAgent::state() const {
  if (gone_) return "gone";
  if (!registered_) return "registering";
  if (!part_ || part_->role == Role::kNone || part_->role == Role::kSpare) return "standing by";
  if (part_->ended) return "stopped";
  return part_->begun ? "training" : "connecting";
}

}  // namespace everstep::elastic
