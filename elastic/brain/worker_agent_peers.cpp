// Who is missing, who is still needed, and when a worker may go.
#include <algorithm>

#include "elastic/brain/worker_agent.h"

namespace everstep::elastic {

// A peer that was never seen may be missing from the view only; one that was seen and is not there any more is gone.
std::vector<WorkerId> WorkerAgent::vanished_workers(const View& view) {
  std::vector<WorkerId> vanished;
  for (const WorkerId& peer : part_->record.roster.plan.workers) {
    const bool is_there = view.find(options_.keys.member(peer)) != nullptr;
    const bool was_there = has(part_->seen, peer);
    if (is_there && !was_there) part_->seen.push_back(peer);
    if (!is_there && was_there) vanished.push_back(peer);
  }
  return vanished;
}

void WorkerAgent::look_at_peers(const View& view, Tick now) {
  const std::vector<WorkerId> vanished = vanished_workers(view);
  if (part_->origin_is_kept) return look_after_donation(view, !vanished.empty());
  if (part_->role != Role::kWorker) return;
  for (const WorkerId& peer : vanished) {
    const bool stops = part_->is_running() && !part_->aborted && !may_go_on_without(peer, now);
    if (stops) break_off("worker " + to_string(peer) + " is gone");
    if (part_->begun || part_->ended) continue;
    give_up(part_->record.roster.attempt);
    part_->ended = true;
    part_->held = in_memory_.value_or(HeldRecord{});
  }
}

// Whoever has made the first update met all others there, and they had what this worker gave.
void WorkerAgent::look_after_donation(const View& view, bool lost_a_worker) {
  const Attempt& attempt = part_->record.roster.attempt;
  const std::vector<WorkerId>& workers = part_->record.roster.plan.workers;
  const auto has_updated = [&](const WorkerId& id) { return view.find(options_.keys.ready(attempt, id)) != nullptr; };
  if (std::any_of(workers.begin(), workers.end(), has_updated)) {
    part_->origin_is_kept = false;
    in_memory_.reset();
    return decide(ReleaseOrigin{}, "the first update is made");
  }
  const bool somebody_stopped = !view.below(options_.keys.held(attempt)).empty();
  const bool is_broken = lost_a_worker || (somebody_stopped && !drain_of_part(view));
  if (is_broken && !part_->held) part_->held = in_memory_.value_or(HeldRecord{});
}

// For a while.
bool WorkerAgent::may_go_on_without(const WorkerId& peer, Tick now) {
  const scheduler::Plan& plan = part_->record.roster.plan;
  const auto group_of = [&](const WorkerId& worker) {
    return (std::find(plan.workers.begin(), plan.workers.end(), worker) - plan.workers.begin()) / plan.depth;
  };
  if (group_of(peer) == group_of(id())) return false;
  if (!part_->bereft) part_->bereft = now;
  const Tick end = *part_->bereft + options_.group_limit();
  if (now < end) wake(end);
  return now < end;
}

bool WorkerAgent::is_needed() const {
  if (!part_ || part_->role == Role::kNone || part_->role == Role::kSpare) return false;
  if (part_->handed_over) return part_->origin_is_kept || !part_->has_written(Write::kReady);
  return !part_->ended || (part_->held && part_->held->has_anything());
}

void WorkerAgent::look_at_leaving(const View& view, Tick now) {
  if (!leaving_) {
    const bool is_done = part_ && part_->handed_over && !is_needed();
    if (is_done && !has(part_->record.roster.plan.spares, id())) rejoin("handed its state over");
    return;
  }
  const auto drain = part_ ? drain_of_part(view) : std::nullopt;
  const bool saved = drain && drain->saves && part_->ended && part_->has_written(Write::kHeld);
  const bool too_late = leaving_->deadline && now >= *leaving_->deadline;
  if (too_late && part_ && part_->is_running()) break_off("no time is left");
  if (!is_needed() || saved || too_late) {
    return leave(Error{ErrorCode::kCancelled, "left as asked: " + leaving_->reason, {}});
  }
  if (leaving_->deadline) wake(*leaving_->deadline);
}

}  // namespace everstep::elastic
