#pragma once

#include <vector>

#include "scheduler/estimate.h"
#include "scheduler/plan.h"

// Workers that compute more slowly than others: how slow they are, where they hurt least, what they cost.
namespace everstep::scheduler {

// Where the slow ones of a plan's D·W fastest workers may sit, each way as the slowness of the devices: where a round
// seems shortest, and where they sit now if everybody would stay. One that is empty if all workers are as fast as
// usual. Where devices are many only some are tried for the slow ones.
std::vector<Slowness> seatings(const ModelProfile& profile, const Placement& placement, int width,
                               const std::vector<WorkerInfo>& workers, const Plan* previous);

// How slow the devices of a plan are with these workers on its seats; workers that are not listed are as fast as usual.
Slowness slowness_of(const Plan& plan, const std::vector<WorkerInfo>& workers);

// How long a window of the plan takes in steady state, with its workers as fast as they are.
Tick window_time(const ModelProfile& profile, const Hardware& hardware, const Plan& plan,
                 const std::vector<WorkerInfo>& workers);

// By worker of the plan: how many times as long as the median worker it computes, each compared with what the profile
// says that its stages cost. `stage_times` has one list per worker: the time of a minibatch at each of its stages,
// ascending; 0 where it is not known. 0 for a worker of which nothing can be said: its times are not known, or its
// stages cost so little that the profile is no measure for them.
std::vector<double> measured_slowness(const Plan& plan, const ModelProfile& profile,
                                      const std::vector<std::vector<Tick>>& stage_times);

}  // namespace everstep::scheduler
