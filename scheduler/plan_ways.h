#pragma once

#include <vector>

#include "scheduler/planner.h"

namespace everstep::scheduler {

// A schedule kind, with as many pipelines as usual (0) or as many as it says.
struct PlanWay {
  ScheduleKind kind;
  int pipelines = 0;
};

bool may_choose_clockwork(const PlanOptions& options);

// What to try at a depth: lists in order of preference, of each of which the first that fits rules out those after it.
// Kinds that the options leave out, and numbers of pipelines that they do not want, are not in them.
std::vector<std::vector<PlanWay>> ways_at(int depth, const PlanOptions& options, bool has_stragglers);

// All numbers of pipelines that some plan within the options could have at this depth, whatever they say about
// pipelines; ascending.
std::vector<int> possible_pipelines(int depth, const PlanOptions& options);

// How many super-rounds a provisional step may leave out: the fewest first, then in growing strides, since each further
// one gives the step more time and its sums fewer minibatches. Empty: the candidate can have none.
std::vector<int> provisional_choices(const Candidate& candidate, const PlanOptions& options);

}  // namespace everstep::scheduler
