#pragma once

#include <vector>

#include "base/result.h"
#include "scheduler/execution.h"
#include "scheduler/schedule.h"

// What workers did, compared with what their lists say: a list leaves open when the gradients of weights are computed.
namespace everstep::scheduler {

// The ops of all workers in the order in which they ran: the lists, with the floating ops in between.
std::vector<std::vector<Op>> ops_as_run(const Schedule& schedule, const std::vector<std::vector<FloatingOp>>& weights);

// Whether workers that ran these ops, each in this order, followed a valid schedule: without kBackwardWeights they are
// the lists. Where backwards are split each is followed by its other half: once, in the order of the backwards, before
// a reduce or copy of the chunk's sum, and never more than most_pending_weights() behind. Names the first op that is
// wrong.
Status validate_run(const Schedule& schedule, const std::vector<std::vector<Op>>& ran);

}  // namespace everstep::scheduler
