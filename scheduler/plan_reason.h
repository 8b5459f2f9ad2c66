#pragma once

#include <string>
#include <vector>

#include "scheduler/planner.h"

namespace everstep::scheduler {

// Whether stage 0 of a pipeline has more than two minibatches in flight, which other numbers of pipelines avoid.
bool is_crowded(const Candidate& candidate);

// Why the chosen candidate won, in a sentence for people. `candidates` is sorted.
std::string reason_for(const Candidate& chosen, const std::vector<Candidate>& candidates);

}  // namespace everstep::scheduler
