#pragma once

#include <vector>

#include "base/result.h"
#include "scheduler/plan.h"

namespace everstep::elastic::sim {

// A plan for so many workers, of a shape that their number picks: depths 1, 2 and 4, all widths that fit, spares. Who
// had a seat before keeps it where that is easy. The kind is clockwork or 1F1B.
Result<scheduler::Plan> plan_for(const std::vector<scheduler::WorkerInfo>& workers, const scheduler::Plan* previous,
                                 int redundancy, scheduler::ScheduleKind kind);

}  // namespace everstep::elastic::sim
