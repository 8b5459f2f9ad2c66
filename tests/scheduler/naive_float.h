#pragma once

#include <vector>

#include "scheduler/execution.h"
#include "scheduler/schedule.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {

// What workers did, and when.
struct NaiveTimes {
  std::vector<std::vector<OpSpan>> spans;        // parallel to the lists
  std::vector<std::vector<FloatingOp>> weights;  // in the order in which they ran
};

// A second implementation of execute() for split backwards: time goes by tick by tick, and whoever has nothing to do
// looks around for something, by the rule as execution.h has it. The schedule must not hang.
NaiveTimes run_tick_by_tick(const Schedule& schedule, const SeededCosts& costs);

}  // namespace everstep::scheduler
