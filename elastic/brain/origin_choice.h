#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "elastic/records.h"

namespace everstep::elastic {

struct OriginChoice {
  Origin origin;
  std::optional<RosterRecord> from{};  // kMemory, kCopies, kSums: whose plan says who holds what
  std::vector<CopyHolder> holders{};   // kCopies
};

// Where the generation after `present` starts: the newest of HEAD and of what is in memory, never behind HEAD. `held`:
// what workers that are still there say they have.
//
// What was left by an orderly stop (kMemory) is taken if
//  * at a window's end: of every stage an owner of some group has it there (weights follow from the owner's);
//  * inside a window: all workers of the plan do, since each has gradients of its own;
//  * whoever of the plan is `there` has it: the next generation takes all of those for holders.
// Copies are taken at the newest window's end at which of every stage an owner or a guard has one. An orderly stop at
// the same position goes before them: it has the weights of replicas too, and less has to move. Between the two come
// the sums that a group kept (kSums): all workers of one group must say the same of them. Of several groups that did,
// the one that has run most is taken, and what the others ran is run again: sums of several would have to be added
// before they can move.
OriginChoice choose_origin(const std::optional<GenerationRecord>& present, const std::map<WorkerId, HeldRecord>& held,
                           const std::optional<HeadRecord>& head, const std::set<WorkerId>& there);

}  // namespace everstep::elastic
