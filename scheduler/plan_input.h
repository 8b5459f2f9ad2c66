#pragma once

#include <vector>

#include "base/result.h"
#include "scheduler/planner.h"

namespace everstep::scheduler {

// Refuses what no plan can be made for, or what contradicts itself, before anything is tried.
Status check_plan_input(const ModelProfile& profile, const std::vector<WorkerInfo>& workers,
                        const PlanOptions& options);

}  // namespace everstep::scheduler
