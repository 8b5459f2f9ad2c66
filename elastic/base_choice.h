#pragma once

#include <map>
#include <optional>
#include <set>

#include "elastic/records.h"

namespace everstep::elastic {

struct BaseChoice {
  Base base;
  std::optional<GroupRecord> from;  // kMemory: whose plan says who holds what
};

// Where the generation after `present` starts. `held`: what workers that are still there say they have in memory.
// Memory is taken if its position is not behind HEAD's and
//  * at a window's end: of every stage an owner of some group has it there (weights follow from the owner's);
//  * inside a window: all workers of the plan do, since each has gradients of its own;
//  * whoever of the plan is `there` has it: the next generation takes all of those for holders.
BaseChoice choose_base(const std::optional<GenerationRecord>& present, const std::map<WorkerId, HeldRecord>& held,
                       const std::optional<HeadRecord>& head, const std::set<WorkerId>& there);

}  // namespace everstep::elastic
