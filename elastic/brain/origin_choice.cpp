#include "elastic/brain/origin_choice.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

namespace everstep::elastic {
namespace {

using AllHeld = std::map<WorkerId, HeldRecord>;

// Whether of every stage somebody of whom that is true owns it, in whichever group, or guards it.
bool covers_all_stages(const scheduler::Plan& plan, const std::function<bool(const WorkerId&)>& has_owned,
                       const std::function<bool(const WorkerId&)>& has_guarded) {
  const scheduler::Placement placement = placement_of(plan);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    bool found = !plan.guards.empty() && std::any_of(plan.guards[stage].begin(), plan.guards[stage].end(), has_guarded);
    for (int group = 0; group < plan.width; ++group) {
      found = found || has_owned(plan.workers[group * plan.depth + placement.owner_of(stage)]);
    }
    if (!found) return false;
  }
  return true;
}

// ---- what an orderly stop left ----

bool is_covered(const scheduler::Plan& plan, Position position, const std::set<WorkerId>& holders) {
  const auto holds = [&](const WorkerId& id) { return holders.contains(id); };
  if (position.value % plan.window != 0) return std::all_of(plan.workers.begin(), plan.workers.end(), holds);
  return covers_all_stages(plan, holds, [](const WorkerId&) { return false; });
}

// The newest position that those who worked under this plan can put together.
std::optional<Position> newest_stop(const RosterRecord& roster, const AllHeld& held, const std::set<WorkerId>& there) {
  std::map<Position, std::set<WorkerId>> holders;
  for (const auto& [id, record] : held) {
    if (record.position && record.of == roster.attempt.generation) holders[*record.position].insert(id);
  }
  for (auto at = holders.rbegin(); at != holders.rend(); ++at) {
    const auto lacks_it = [&](const WorkerId& id) { return there.contains(id) && !at->second.contains(id); };
    const bool somebody_lacks_it = std::any_of(roster.plan.workers.begin(), roster.plan.workers.end(), lacks_it);
    if (!somebody_lacks_it && is_covered(roster.plan, at->first, at->second)) return at->first;
  }
  return std::nullopt;
}

// ---- sums of a group ----

std::optional<HeldSums> best_sums(const RosterRecord& roster, const AllHeld& held) {
  const scheduler::Plan& plan = roster.plan;
  std::optional<HeldSums> best;
  for (int number = 0; number < plan.width; ++number) {
    const auto first = plan.workers.begin() + std::ptrdiff_t{number} * plan.depth;
    const auto of_first = held.find(*first);
    if (of_first == held.end() || !of_first->second.sums) continue;
    const HeldSums& sums = *of_first->second.sums;
    const bool all_say_so = std::all_of(first, first + plan.depth, [&](const WorkerId& id) {
      const auto record = held.find(id);
      return record != held.end() && record->second.sums == sums;
    });
    if (!all_say_so || sums.of != roster.attempt.generation || sums.group != number) continue;
    const auto worth = [](const HeldSums& one) { return std::pair(one.position, one.rounds); };
    if (!best || worth(sums) > worth(*best)) best = sums;
  }
  return best;
}

// ---- copies ----

using Holders = std::vector<CopyHolder>;

bool covers(const scheduler::Plan& plan, const Holders& holders) {
  const auto any_with = [&](bool CopyHolder::*part) {
    return [&holders, part](const WorkerId& id) {
      return std::any_of(holders.begin(), holders.end(),
                         [&](const CopyHolder& holder) { return holder.id == id && holder.*part; });
    };
  };
  return covers_all_stages(plan, any_with(&CopyHolder::owned), any_with(&CopyHolder::guarded));
}

std::optional<std::pair<Position, Holders>> newest_copies(const RosterRecord& roster, const AllHeld& held) {
  std::map<Position, Holders> at;
  for (const auto& [id, record] : held) {
    for (const HeldCopy& copy : record.copies) {
      if (copy.of == roster.attempt.generation) at[copy.position].push_back({id, copy.owned, copy.guarded});
    }
  }
  for (auto newest = at.rbegin(); newest != at.rend(); ++newest) {
    if (covers(roster.plan, newest->second)) return *newest;
  }
  return std::nullopt;
}

}  // namespace

OriginChoice choose_origin(const std::optional<GenerationRecord>& present, const AllHeld& held,
                           const std::optional<HeadRecord>& head, const std::set<WorkerId>& there) {
  OriginChoice choice;
  if (head) choice.origin = {Origin::Kind::kCheckpoint, head->position, head->manifest};
  if (!present) return choice;
  // Memory is as good as a checkpoint at the same position, and quicker to get at.
  const auto is_better = [&](Position position) {
    return choice.from ? position > choice.origin.position : position >= choice.origin.position;
  };
  const auto consider = [&](const RosterRecord& roster) {
    if (const auto position = newest_stop(roster, held, there); position && is_better(*position)) {
      choice = {{Origin::Kind::kMemory, *position, {}}, roster, {}};
    }
    if (const auto sums = best_sums(roster, held); sums && is_better(sums->position)) {
      choice = {{Origin::Kind::kSums, sums->position, {}, sums->group, sums->rounds}, roster, {}};
    }
    if (auto copies = newest_copies(roster, held); copies && is_better(copies->first)) {
      choice = {{Origin::Kind::kCopies, copies->first, {}}, roster, std::move(copies->second)};
    }
  };
  consider(present->roster);
  if (present->from) consider(*present->from);
  return choice;
}

}  // namespace everstep::elastic
