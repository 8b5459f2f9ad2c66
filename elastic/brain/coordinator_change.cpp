// Planned changes: joins, announced leaves, other speeds.
#include <algorithm>
#include <utility>

#include "elastic/brain/coordinator.h"

namespace everstep::elastic {
namespace {

// Enough to hand over what a worker of any model holds, unless there is less.
constexpr Tick kHandOver = 2 * kTicksPerSecond;

constexpr int kMostRetryDoublings = 5;  // of the wait of somebody who could not be connected to

// How long a stop at a window's end may take: an asynchronous pipeline is told of it at one update, and has begun the
// window after that.
Tick time_to_stop(const Situation& seen, Tick window_time) {
  return is_asynchronous(seen.generation->roster.plan.kind) ? 2 * window_time : window_time;
}

bool are_equal_sets(std::vector<WorkerId> a, std::vector<WorkerId> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

}  // namespace

void Coordinator::consider_change(const Situation& seen, Tick now, Tick window_time) {
  state_ = seen.ready.empty() ? "starting" : "training";
  if (seen.stop_asked) return drain(seen, {.ends_job = true, .reason = "the job was asked to stop"});
  const RosterRecord& roster = seen.generation->roster;
  const std::vector<WorkerId> workers = eligible(seen, now);
  std::vector<WorkerId> joined;
  for (const WorkerId& id : workers) {
    if (!roster.names(id)) joined.push_back(id);
  }
  const auto is_leaving = [&](const WorkerId& id) { return seen.is_leaving(id); };
  const bool leaves = std::any_of(roster.plan.workers.begin(), roster.plan.workers.end(), is_leaving);
  if (!leaves && !joins_are_due(seen, joined, now)) return consider_rebalance(seen, now);
  const bool all_leave = std::all_of(seen.members.begin(), seen.members.end(),
                                     [&](const auto& member) { return seen.is_leaving(member.first); });
  if (all_leave) return drain(seen, {.ends_job = true, .reason = "everybody leaves"});
  if (waits_for_more(workers.size())) return drain(seen, {.saves = true, .reason = "too few workers stay"});
  const auto change = planned(seen, workers);
  if (!change && leaves) return drain(seen, {.saves = true, .reason = "there is no plan for those who stay"});
  if (!change || are_equal_sets(change->plan.workers, roster.plan.workers)) {
    return leaves ? void() : consider_rebalance(seen, now);
  }
  if (const auto latest = must_drain_at(seen, window_time); latest && now >= *latest) {
    return drain_for_leavers(seen, now, window_time, change->reason);
  }
  propose(seen, *change);
}

bool Coordinator::joins_are_due(const Situation& seen, const std::vector<WorkerId>& joined, Tick now) {
  for (const auto& [id, back] : set_back_) {
    if (back.until > now && seen.has(id)) wake(back.until);
  }
  wake_for_quarantines(now);
  if (joined.empty()) return false;
  Tick first = joined_at_.at(joined.front());
  for (const WorkerId& id : joined) first = std::min(first, joined_at_.at(id));
  const Tick due = std::max(first + options_.join_debounce, watched_since_ + options_.join_interval);
  if (now < due) wake(due);
  return now >= due;
}

std::optional<Tick> Coordinator::leave_deadline(const Situation& seen) const {
  std::optional<Tick> earliest;
  for (const WorkerId& id : seen.live_workers()) {
    const MemberRecord& record = seen.members.at(id).record;
    if (record.state != MemberState::kLeaving || record.leave_ms == 0) continue;
    const Tick deadline = leaving_since_.at(id) + record.leave_ms * kMillisecond;
    if (!earliest || deadline < *earliest) earliest = deadline;
  }
  return earliest;
}

// When there is just time for a window, or for part of one, and for handing over; preparing longer would be too late.
std::optional<Tick> Coordinator::must_drain_at(const Situation& seen, Tick window_time) const {
  const auto deadline = leave_deadline(seen);
  if (!deadline) return std::nullopt;
  return *deadline - std::min(time_to_stop(seen, window_time), 4 * kTicksPerSecond) - kHandOver;
}

void Coordinator::drain_for_leavers(const Situation& seen, Tick now, Tick window_time, const std::string& reason) {
  const auto deadline = leave_deadline(seen);
  const Tick left = deadline ? *deadline - now : 0;
  const Tick for_stopping = left - std::min(kHandOver, left / 2);
  const bool too_long = deadline && (window_time == 0 || for_stopping < time_to_stop(seen, window_time));  // 0: unknown
  drain(seen, {.inside_window = too_long, .reason = reason});
}

void Coordinator::propose(const Situation& seen, const Change& change) {
  const RosterRecord& present = seen.generation->roster;
  RosterRecord roster;
  roster.attempt = {present.attempt.generation.next(), options_.nonce()};
  roster.plan = change.plan;
  for (const WorkerId& id : present.plan.workers) {
    if (!has(roster.plan.workers, id)) roster.donors.push_back(id);
  }
  why_ = {roster.attempt, change.reason};
  planned_for_ = speeds_.slow();
  Txn txn = as_leader(seen);
  txn.compares.push_back(modified_at(options_.keys.proposal(), seen.proposal_modified));
  txn.then = {put(options_.keys.proposal(), to_text(roster))};
  send(std::move(txn), "propose: " + change.reason);
}

// Whether its members are there, none of them has changed its mind, and it is about the next generation.
bool Coordinator::is_usable(const Situation& seen, const RosterRecord& proposal) const {
  if (proposal.attempt.generation != seen.generation->roster.attempt.generation.next()) return false;
  const std::vector<WorkerId> connected = proposal.connected();
  const auto works = [&](const WorkerId& id) { return seen.has(id) && !seen.is_leaving(id); };
  const auto is_there = [&](const WorkerId& id) { return seen.has(id); };
  const auto& workers = proposal.plan.workers;
  return std::all_of(connected.begin(), connected.end(), is_there) &&
         std::all_of(workers.begin(), workers.end(), works);
}

void Coordinator::await_prepared(const Situation& seen, Tick now, Tick window_time) {
  state_ = "preparing";
  const RosterRecord& proposal = *seen.proposal;
  if (proposed_ != proposal.attempt) {
    proposed_ = proposal.attempt;
    proposed_since_ = now;
  }
  if (!is_usable(seen, proposal)) return withdraw(seen, now, "somebody of it left");
  const auto latest = must_drain_at(seen, window_time);
  std::vector<WorkerId> next = proposal.plan.workers;
  next.insert(next.end(), proposal.plan.spares.begin(), proposal.plan.spares.end());
  std::string reason = change_text(seen, next);
  if (reason.empty()) reason = why_.first == proposal.attempt ? why_.second : "rebalanced";
  if (latest && now >= *latest) return drain_for_leavers(seen, now, window_time, reason);
  bool all_connected = true;
  for (const WorkerId& id : proposal.connected()) {
    const auto prepared = seen.prepared.find(id);
    all_connected = all_connected && prepared != seen.prepared.end();
    if (prepared != seen.prepared.end() && !prepared->second.connected) {
      return withdraw(seen, now, name_of(id) + " cannot connect: " + prepared->second.error);
    }
  }
  if (all_connected) return drain_for_leavers(seen, now, window_time, reason);
  const Tick limit = proposed_since_ + options_.prepare_limit;
  if (now >= limit) return withdraw(seen, now, "it takes too long to connect");
  wake(latest ? std::min(*latest, limit) : limit);
}

// Newcomers that did not connect, or all of them if others did not, have to wait before they are tried again, longer
// each time.
void Coordinator::withdraw(const Situation& seen, Tick now, const std::string& reason) {
  const RosterRecord& proposal = *seen.proposal;
  std::vector<WorkerId> joining;
  std::vector<WorkerId> blamed;
  for (const WorkerId& id : proposal.plan.workers) {
    if (seen.generation->roster.names(id)) continue;
    joining.push_back(id);
    const auto prepared = seen.prepared.find(id);
    if (prepared == seen.prepared.end() || !prepared->second.connected) blamed.push_back(id);
  }
  LogLine event("proposal_withdrawn");
  event.add("generation", proposal.attempt.generation.value).add("reason", reason);
  if (is_usable(seen, proposal)) {
    std::string names;
    for (const WorkerId& id : blamed.empty() ? joining : blamed) {
      SetBack& back = set_back_[id];
      back.until = now + (options_.join_interval << std::min(back.times++, kMostRetryDoublings));
      names += (names.empty() ? "" : ", ") + name_of(id);
      wake(back.until);
    }
    event.add("set_back", names);
    event.add("hint", "they stand by and are tried again later; can all hosts reach their addresses? see --advertise");
  }
  note(event);
  Txn txn = as_leader(seen);
  txn.compares.push_back(modified_at(options_.keys.proposal(), seen.proposal_modified));
  txn.then = {remove(options_.keys.proposal()), remove_prefix(options_.keys.all_prepared())};
  send(std::move(txn), "withdraw the proposal: " + reason);
}

void Coordinator::drain(const Situation& seen, DrainRecord record) {
  record.attempt = seen.generation->roster.attempt;
  record.asked = record.ends_job && seen.stop_asked;
  Txn txn = as_leader(seen);
  txn.compares.push_back(modified_at(options_.keys.drain(), seen.drain_modified));
  txn.then = {put(options_.keys.drain(), to_text(record))};
  if (record.asked) txn.then.push_back(remove(options_.keys.stop_request()));
  send(std::move(txn), "drain: " + record.reason);
}

void Coordinator::await_drain(const Situation& seen, Tick now) {
  state_ = "draining";
  const auto& workers = seen.generation->roster.plan.workers;
  const auto all_in = [&](const auto& records) {
    return std::all_of(workers.begin(), workers.end(), [&](const WorkerId& id) { return records.contains(id); });
  };
  if (all_in(seen.held)) {
    if (waits_for_more(eligible(seen, now).size())) return stop_if_asked(seen);
    const OriginChoice choice = choose_origin(seen.generation, held_by_the_living(seen), seen.head, living(seen));
    const bool from_here =
        choice.origin.kind == Origin::Kind::kMemory && choice.from->attempt == seen.generation->roster.attempt;
    const auto is_prepared = [&](const WorkerId& id) {
      const auto prepared = seen.prepared.find(id);
      return prepared != seen.prepared.end() && prepared->second.connected;
    };
    if (seen.proposal && from_here && is_usable(seen, *seen.proposal)) {
      const std::vector<WorkerId> connected = seen.proposal->connected();
      if (std::all_of(connected.begin(), connected.end(), is_prepared)) {
        return open(seen, *seen.proposal, choice, seen.drain->reason);
      }
    }
    return open_anew(seen, now, "drained");
  }
  if (!seen.drain->inside_window || seen.drain->stop_round || !all_in(seen.promises)) return;
  DrainRecord record = *seen.drain;
  record.stop_round = 0;
  for (const auto& [id, promise] : seen.promises) *record.stop_round = std::max(*record.stop_round, promise.round + 1);
  drain(seen, std::move(record));
}

}  // namespace everstep::elastic
