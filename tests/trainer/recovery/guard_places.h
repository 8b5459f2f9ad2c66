#pragma once

#include <vector>

#include "scheduler/plan.h"
#include "tests/trainer/recovery/guarded_chain.h"

namespace everstep::trainer {

// Who is connected, by number in the transport: workers, then those who only hand over.
std::vector<int> connected(const GuardedGeneration& generation);

// Where a name stands among these, −1 if nowhere.
int number_of(const std::vector<int>& names, int name);

// Names of the guards per stage: the workers that follow the owner.
std::vector<std::vector<int>> guards_of(const GuardedGeneration& generation);

// The plan, the model's blocks cut evenly. Of the options model and schedule.window and .preload count.
scheduler::Plan plan_of(const GuardedGeneration& generation, const TrainOptions& options);

}  // namespace everstep::trainer
