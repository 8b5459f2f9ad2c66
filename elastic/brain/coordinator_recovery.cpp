// Unplanned changes: somebody of the generation is gone, or could not take part.
#include <algorithm>
#include <iterator>
#include <utility>

#include "elastic/brain/coordinator.h"
#include "elastic/brain/suspicion.h"

namespace everstep::elastic {
namespace {

Revision newest_member(const Situation& seen) {
  Revision newest = 0;
  for (const auto& [id, member] : seen.members) newest = std::max(newest, member.created);
  return newest;
}

// For a leader that does not train itself; 0: nobody has told yet.
Tick shown_window_time(const Situation& seen) { return seen.progress ? seen.progress->update_us * kMicrosecond : 0; }

}  // namespace

bool Coordinator::is_broken(const Situation& seen) const {
  if (seen.live_workers().size() < seen.generation->roster.plan.workers.size()) return true;
  const auto& donors = seen.generation->roster.donors;
  const auto left_too_early = [&](const WorkerId& id) { return !seen.has(id) && !seen.handed_over.contains(id); };
  if (std::any_of(donors.begin(), donors.end(), left_too_early)) return true;  // the others wait for what it had
  // Whoever was drained tells of this generation; whoever has only what it started from never came to train.
  const auto is_drained = [&](const HeldRecord& held) {
    return seen.drain && held.position && held.of == seen.generation->roster.attempt.generation;
  };
  return std::any_of(seen.held.begin(), seen.held.end(), [&](const auto& held) { return !is_drained(held.second); });
}

void Coordinator::recover(const Situation& seen, Tick now, Tick window_time) {
  state_ = "recovering";
  const std::size_t left = seen.live_workers().size();
  if (!broken_) broken_ = {now, now, left, newest_member(seen)};
  if (std::exchange(broken_->left, left) != left) broken_->last_loss = now;
  const Tick quiet_from = broken_->last_loss + options_.death_debounce;
  if (now < quiet_from) return wake(quiet_from);
  const bool all_said = silent_survivors(seen).empty();
  // Whoever is inside an op tells after it, and no op takes longer than a window. One that hangs loses its lease.
  const Tick patience = broken_->since + options_.held_limit + std::max(window_time, shown_window_time(seen));
  if (!all_said && now < patience) return wake(patience);
  // While the store takes no writes nobody can say anything.
  if (!all_said && !std::exchange(broken_->has_asked, true)) {
    Txn txn = as_leader(seen);
    const LeaderRecord same{options_.self, seen.members.at(options_.self).created};
    txn.then = {put(options_.keys.leader(), to_text(same), options_.lease)};
    return send(std::move(txn), "see whether the store takes writes");
  }
  // What nobody else has would be lost with an event that was.
  if (!all_said && !std::exchange(broken_->has_looked, true)) {
    decision_.effects.emplace_back(LookAgain{});
    return wake(now);
  }
  if (evict_outcasts(seen)) return;
  if (pauses_after_failures(now)) return;
  wake_for_quarantines(now);
  if (waits_for_more(eligible(seen, now).size())) return seen.stop_asked ? stop_if_asked(seen) : let_leavers_go(seen);
  open_anew(seen, now, "recovery");
}

// After generations that never came to an update, longer each time.
bool Coordinator::pauses_after_failures(Tick now) {
  constexpr Tick kFirstPause = 100 * kMillisecond;
  const Tick until = watched_since_ + (fruitless_ == 0 ? 0 : kFirstPause << std::min(fruitless_, 6));
  if (now < until) wake(until);
  return now < until;
}

// Those of the generation that are there and may hold something that they have not told of.
std::vector<WorkerId> Coordinator::silent_survivors(const Situation& seen) const {
  std::vector<WorkerId> silent = seen.generation ? seen.generation->roster.connected() : std::vector<WorkerId>{};
  const bool has_updated = !seen.ready.empty();  // donors have let go of the origin then
  std::erase_if(silent, [&](const WorkerId& id) {
    return !seen.has(id) || seen.held.contains(id) || (has_updated && seen.handed_over.contains(id));
  });
  return silent;
}

// Who comes while a generation is broken may be one that was evicted from it because nobody reaches it. If the others
// can go on alone, it joins when they train, where a connection that fails does no harm.
std::vector<WorkerId> Coordinator::those_to_go_on(const Situation& seen, Tick now) const {
  std::vector<WorkerId> all = eligible(seen, now);
  if (!broken_ || seen.live_workers().empty()) return all;
  const auto was_there = [&](const WorkerId& id) {
    return seen.generation->roster.names(id) || seen.members.at(id).created <= broken_->newest_member;
  };
  std::vector<WorkerId> early;
  std::ranges::copy_if(all, std::back_inserter(early), was_there);
  const bool are_enough = std::ssize(early) >= std::max(options_.min_workers, 1);
  if (early.size() == all.size() || !are_enough) return all;
  return options_.plan(infos_of(seen, early), &seen.generation->roster.plan) ? early : all;
}

// Nobody goes on from what they hold, so it need not be held any longer.
void Coordinator::let_leavers_go(const Situation& seen) {
  const std::vector<WorkerId> workers = seen.live_workers();
  const bool leaves = std::any_of(workers.begin(), workers.end(), [&](const auto& id) { return seen.is_leaving(id); });
  if (leaves && !seen.drain) drain(seen, {.saves = true, .reason = "too few are left to go on"});
}

std::string Coordinator::eviction_event(const Situation& seen, const MemberRecord& member) const {
  std::string by;
  for (const auto& [suspect, reporter] : seen.suspicions) {
    if (suspect == member.id) by += (by.empty() ? "" : ", ") + name_of(reporter);
  }
  return LogLine("evicted")
      .add("worker", member.name)
      .add("host", member.host)
      .add("address", member.address)
      .add("reason", by.empty() ? "it cannot reach others that reach each other" : "it does not answer " + by)
      .add("hint", "its log and the network between these hosts say why; it may come back")
      .text();
}

bool Coordinator::evict_outcasts(const Situation& seen) {
  std::set<WorkerId> answered;
  for (const auto& [id, held] : seen.held) answered.insert(id);
  // Once one of them is gone what the others say of each other is not complete any more.
  const bool has_begun = std::ranges::any_of(judged_, [&](const WorkerId& id) { return !seen.has(id); });
  if (!has_begun) judged_ = outcasts(seen.live_workers(), seen.suspicions, answered);
  Txn txn = as_leader(seen);
  std::string names;
  std::vector<std::string> events;
  constexpr std::size_t kMostAtOnce = 50;
  for (const WorkerId& id : judged_) {
    const auto member = seen.members.find(id);
    if (member == seen.members.end() || txn.then.size() == kMostAtOnce) continue;
    txn.compares.push_back(created_at(options_.keys.member(id), member->second.created));
    // It may have been the store that kept it from answering.
    if (!answered.contains(id)) {
      txn.compares.push_back(is_absent(options_.keys.held(seen.generation->roster.attempt, id)));
    }
    txn.then.push_back(remove(options_.keys.member(id)));
    names += " " + name_of(id);
    events.push_back(eviction_event(seen, member->second.record));
  }
  if (txn.then.empty()) return false;
  send(std::move(txn), "evict" + names);
  pending_->events = std::move(events);
  return true;
}

}  // namespace everstep::elastic
