#pragma once

#include <vector>

#include "base/result.h"
#include "scheduler/planner.h"

namespace everstep::launcher {

// A plan of a kind that the planner only compares with, which wishes.kind names: one group as deep as there are workers
// for, unless the wishes say otherwise. It is the only candidate.
Result<scheduler::PlanReport> plan_to_compare_with(const scheduler::ModelProfile& profile,
                                                   const std::vector<scheduler::WorkerInfo>& workers,
                                                   const scheduler::PlanOptions& wishes);

}  // namespace everstep::launcher
