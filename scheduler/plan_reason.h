#pragma once

#include <string>
#include <vector>

#include "scheduler/estimate.h"
#include "scheduler/planner.h"

namespace everstep::scheduler {

// Whether stage 0 of a pipeline has more than two minibatches in flight, which other numbers of pipelines avoid.
bool is_crowded(const Candidate& candidate);

// Why the chosen candidate won, in a sentence for people. `candidates` are those that were timed, fastest first; all
// of them are without a provisional step.
std::string reason_for(const Candidate& chosen, const std::vector<Candidate>& candidates);

// "at depth 8 there can be 1, 2 or 4": pipelines of plans within the options, whatever they say about pipelines. Empty
// if there is no such plan.
std::string pipelines_hint(int depth, const PlanOptions& options);

// Why there is no plan: no shape of so many workers and blocks is what the options want.
Error no_shape(const PlanOptions& options, int workers, int blocks);

// Why there is no plan: none of the shapes, of which there is one at least, has the memory that it needs.
Error nothing_fits(const ModelProfile& profile, const Hardware& hardware, const std::vector<PlanShape>& shapes);

}  // namespace everstep::scheduler
