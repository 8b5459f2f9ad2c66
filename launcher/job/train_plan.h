#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/job/train_request.h"

namespace everstep::launcher {

// Who does what in a run, and what that is expected to need.
struct TrainPlan {
  scheduler::Plan plan;
  std::int64_t predicted_bytes = 0;  // on the fullest worker, with what checkpoints are written from
  std::int64_t copy_bytes = 0;       // besides, where copies are kept in case a worker is lost
  Tick predicted_window = 0;         // how long an update takes
  std::string reason;                // for people
};

// The planner's choice within the wishes of the request, as report_plan makes it. Pure: equal requests have equal plans
// in every process.
Result<TrainPlan> make_train_plan(const TrainRequest& request);

// The same for these workers, whatever their number; plans that are nearly as fast are chosen to move little from
// `previous` (which may be nullptr).
Result<TrainPlan> make_train_plan(const TrainRequest& request, const std::vector<scheduler::WorkerInfo>& workers,
                                  const scheduler::Plan* previous);

// What the planner reckons with.
scheduler::ModelProfile train_profile(const TrainRequest& request);

// How long a window of the plan takes, with its workers as fast as these say.
Tick predicted_window(const TrainRequest& request, const scheduler::Plan& plan,
                      const std::vector<scheduler::WorkerInfo>& workers);

// What every worker of the run hands to train().
trainer::TrainOptions train_options_of(const TrainRequest& request, const TrainPlan& plan, std::uint64_t lineage);

// "amdp D=4 P=2 W=1 M=16 preload=2 cuts=0,3,5,8,10 everstep=0.1.0": what all processes of a run must agree on.
std::string describe_setup(const scheduler::Plan& plan);

}  // namespace everstep::launcher
