#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"

// Gradients summed as floats: the default, which promises equal bits for equal plans only.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

TrainOptions float_training(const TestPlan& plan) {
  TrainOptions options = under_plan(tiny_training(ModelFamily::kGpt, 3), plan);
  options.accumulation = Accumulation::kFloat;
  return options;
}

TEST(FloatSums, GiveEqualBitsOnTwoRunsOfOnePlan) {
  const TrainOptions options = float_training({ScheduleKind::kAmdp, 4, 2, 16});
  const auto data = shipped_corpus(options.model);
  EXPECT_EQ(difference_between(run_in_threads(options, *data), run_in_threads(options, *data)), "");
}

TEST(FloatSums, LeaveTheReplicasEqual) {
  const TrainOptions options = float_training({ScheduleKind::kAmdp, 4, 2, 19});
  EXPECT_EQ(difference_among_replicas(run_in_threads(options, *shipped_corpus(options.model))), "");
}

TEST(FloatSums, StayCloseToTheOracle) {
  TrainOptions options = float_training({ScheduleKind::kAmdp, 4, 1, 8});
  options.adam.epsilon = 1e-3;  // or the tiniest gradients' signs would decide whole steps
  const auto data = shipped_corpus(options.model);
  const OracleRun oracle = run_oracle(options, *data);
  const auto runs = run_in_threads(options, *data);
  ASSERT_TRUE(runs.ok()) << runs.error();
  for (std::size_t i = 0; i < oracle.steps.size(); ++i) {
    EXPECT_NEAR(runs->front().steps[i].loss, oracle.steps[i].loss, 1e-5 * oracle.steps[i].loss);
    EXPECT_NEAR(runs->front().steps[i].gradient_norm, oracle.steps[i].gradient_norm,
                1e-4 * oracle.steps[i].gradient_norm);
  }
  TrainOptions untrained = options;
  untrained.steps = 0;
  EXPECT_LT(relative_distance(joined_weights(*runs), oracle.weights, run_oracle(untrained, *data).weights), 1e-4);
}

}  // namespace
}  // namespace everstep::trainer
