#include "elastic/base_choice.h"

#include <algorithm>
#include <set>

namespace everstep::elastic {
namespace {

bool owners_hold(const scheduler::Plan& plan, const std::set<WorkerId>& holders) {
  const scheduler::Placement placement = placement_of(plan);
  for (int stage = 0; stage < placement.stages(); ++stage) {
    bool found = false;
    for (int group = 0; group < plan.width; ++group) {
      found = found || holders.contains(plan.workers[group * plan.depth + placement.owner_of(stage)]);
    }
    if (!found) return false;
  }
  return true;
}

bool is_covered(const scheduler::Plan& plan, Position position, const std::set<WorkerId>& holders) {
  if (position.value % plan.window == 0) return owners_hold(plan, holders);
  return std::all_of(plan.workers.begin(), plan.workers.end(), [&](const auto& id) { return holders.contains(id); });
}

// The newest position that those who worked under this group's plan can put together.
std::optional<Position> newest_covered(const GroupRecord& group, const std::map<WorkerId, HeldRecord>& held,
                                       const std::set<WorkerId>& there) {
  std::map<Position, std::set<WorkerId>> holders;
  for (const auto& [id, record] : held) {
    if (record.position && record.of == group.attempt.generation) holders[*record.position].insert(id);
  }
  for (auto at = holders.rbegin(); at != holders.rend(); ++at) {
    const auto lacks_it = [&](const WorkerId& id) { return there.contains(id) && !at->second.contains(id); };
    const bool somebody_lacks_it = std::any_of(group.plan.workers.begin(), group.plan.workers.end(), lacks_it);
    if (!somebody_lacks_it && is_covered(group.plan, at->first, at->second)) return at->first;
  }
  return std::nullopt;
}

}  // namespace

BaseChoice choose_base(const std::optional<GenerationRecord>& present, const std::map<WorkerId, HeldRecord>& held,
                       const std::optional<HeadRecord>& head, const std::set<WorkerId>& there) {
  BaseChoice choice;
  if (head) choice.base = {Base::Kind::kCheckpoint, head->position, head->manifest};
  if (!present) return choice;
  const auto consider = [&](const GroupRecord& group) {
    const auto position = newest_covered(group, held, there);
    const bool is_better = position && *position >= choice.base.position;
    if (is_better && !(choice.from && *position == choice.base.position)) {
      choice = {{Base::Kind::kMemory, *position, {}}, group};
    }
  };
  consider(present->group);
  if (present->from) consider(*present->from);
  return choice;
}

}  // namespace everstep::elastic
