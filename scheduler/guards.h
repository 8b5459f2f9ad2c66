#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/plan.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// Gives every stage guards until its owner state has 1 + `redundancy` copies, as far as memory allows: owners and
// guards keep two complete versions each. A guard is on another host if one is left, a spare before a busy worker, and
// work is spread evenly. `free_bytes` is what each seat of the plan (worker mod depth) leaves unused; a spare has all
// of `memory_bytes`. Fills plan.guards.
void place_guards(Plan& plan, const std::vector<StageCost>& stages, const std::vector<WorkerInfo>& workers,
                  int redundancy, std::int64_t memory_bytes, const std::vector<std::int64_t>& free_bytes);

// What the plan survives. `fewest_workers` is the smallest number that some plan fits on.
Survival survival_of(const Plan& plan, const std::vector<StageCost>& stages, const std::vector<WorkerInfo>& workers,
                     int fewest_workers, const std::vector<std::int64_t>& free_bytes);

}  // namespace everstep::scheduler
