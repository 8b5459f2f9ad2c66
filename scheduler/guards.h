#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// Gives every stage guards until its owner state has 1 + `redundancy` copies, as far as memory allows: owners and
// guards keep two complete versions each. A guard is on another host if one is left, and work is spread evenly. Spares
// are no guards: they are connected to nobody, so that their end disturbs nobody. `free_bytes` is what each seat of the
// plan (worker mod depth) leaves unused. Fills plan.guards; leaves them empty, without a list per stage, where owners
// have no room for their second version: then nobody keeps copies.
void place_guards(Plan& plan, const std::vector<StageCost>& stages, const std::vector<WorkerInfo>& workers,
                  int redundancy, const std::vector<std::int64_t>& free_bytes);

// What the plan survives. `fewest_workers` is the smallest number that some plan fits on.
Survival survival_of(const Plan& plan, const std::vector<StageCost>& stages, const std::vector<WorkerInfo>& workers,
                     int fewest_workers, const std::vector<std::int64_t>& free_bytes);

// Whether workers keep copies at all: the same on all of them. As the plan says; other groups are copies, too.
bool keeps_copies(const Plan& plan, int redundancy);

// What copies take on the worker with most of them: of an owner's state the version before, of what it guards two.
std::int64_t copy_bytes(const Plan& plan, const ModelProfile& profile, int redundancy);

// What the copies alone make possible, if there is memory for them and workers enough are left.
Survival survival_by_copies(const Plan& plan, const std::map<WorkerId, std::string>& host_of);

// The fewest workers whose loss at once would leave some stage without any copy of its owner state.
std::vector<WorkerId> one_loss_too_many(const Plan& plan);

}  // namespace everstep::scheduler
