#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// Few layers at small depths keep the tests quick; every stage needs a block.
TrainOptions amdp_training(ModelFamily family, const TestPlan& plan) {
  return under_plan(tiny_training(family, plan.depth <= 4 ? 3 : plan.depth - 1), plan);
}

std::string difference_from_oracle(const TrainOptions& options) {
  const auto data = shipped_corpus(options.model);
  const OracleRun oracle = run_oracle(options, *data);
  for (const OracleStep& step : oracle.steps) {
    if (step.gradient_norm <= options.adam.clip_norm) return "clipping was not at work";
  }
  return difference_from(oracle, run_in_threads(options, *data));
}

class AmdpPlan : public testing::TestWithParam<TestPlan> {};

TEST_P(AmdpPlan, GivesTheBitsOfTheOracleForGpt) {
  EXPECT_EQ(difference_from_oracle(amdp_training(ModelFamily::kGpt, GetParam())), "");
}

TEST_P(AmdpPlan, GivesTheBitsOfTheOracleForBert) {
  EXPECT_EQ(difference_from_oracle(amdp_training(ModelFamily::kBert, GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(
    Threads, AmdpPlan,
    testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 2}, TestPlan{ScheduleKind::kAmdp, 2, 1, 8},
                    TestPlan{ScheduleKind::kAmdp, 2, 2, 8, 1}, TestPlan{ScheduleKind::kAmdp, 2, 2, 11},
                    TestPlan{ScheduleKind::kAmdp, 4, 1, 4}, TestPlan{ScheduleKind::kAmdp, 4, 1, 8, 1},
                    TestPlan{ScheduleKind::kAmdp, 4, 1, 16}, TestPlan{ScheduleKind::kAmdp, 4, 2, 8},
                    TestPlan{ScheduleKind::kAmdp, 4, 2, 19}, TestPlan{ScheduleKind::kAmdp, 4, 2, 32, 1},
                    TestPlan{ScheduleKind::kAmdp, 8, 1, 8}, TestPlan{ScheduleKind::kAmdp, 8, 1, 16, 1},
                    TestPlan{ScheduleKind::kAmdp, 8, 1, 21}, TestPlan{ScheduleKind::kAmdp, 8, 2, 16},
                    TestPlan{ScheduleKind::kAmdp, 8, 2, 32}),
    [](const auto& test) { return name_of(test.param); });

TEST(Amdp, GivesTheBitsOfTheOracleOnDeepPipelines) {
  EXPECT_EQ(difference_from_oracle(amdp_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 12, 1, 12})), "");
  EXPECT_EQ(difference_from_oracle(amdp_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 16, 1, 20})), "");
}

TEST(Amdp, GivesTheBitsOfTheOracleInBf16) {
  TrainOptions options = amdp_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  options.model.precision = Precision::kBf16;
  EXPECT_EQ(difference_from_oracle(options), "");
}

TEST(Amdp, GivesTheBitsOfTheOracleWithRecomputation) {
  for (const ModelFamily family : {ModelFamily::kGpt, ModelFamily::kBert}) {
    TrainOptions options = amdp_training(family, {ScheduleKind::kAmdp, 4, 1, 8});
    options.model.recompute = true;
    EXPECT_EQ(difference_from_oracle(options), "");
  }
}

TEST(Amdp, GivesTheBitsOfTheOracleOverManyWindows) {
  TrainOptions options = amdp_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 4});
  options.steps = 12;
  EXPECT_EQ(difference_from_oracle(options), "");
}

TEST(Amdp, DiffersFromSynchronousTrainingOnceWindowsMeet) {
  const TrainOptions options = amdp_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data);
  ASSERT_TRUE(runs.ok()) << runs.error();
  EXPECT_NE(difference_from(run_plain_training(options, *data), runs), "");
}

}  // namespace
}  // namespace everstep::trainer
