#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// Few layers at small depths keep the tests quick; every stage needs a block.
TrainOptions asynchronous_training(ModelFamily family, const TestPlan& plan) {
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

class AsynchronousPlan : public testing::TestWithParam<TestPlan> {};

TEST_P(AsynchronousPlan, GivesTheBitsOfTheOracleForGpt) {
  EXPECT_EQ(difference_from_oracle(asynchronous_training(ModelFamily::kGpt, GetParam())), "");
}

TEST_P(AsynchronousPlan, GivesTheBitsOfTheOracleForBert) {
  EXPECT_EQ(difference_from_oracle(asynchronous_training(ModelFamily::kBert, GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(
    Amdp, AsynchronousPlan,
    testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 2}, TestPlan{ScheduleKind::kAmdp, 2, 1, 8},
                    TestPlan{ScheduleKind::kAmdp, 2, 2, 8, 1}, TestPlan{ScheduleKind::kAmdp, 2, 2, 11},
                    TestPlan{ScheduleKind::kAmdp, 4, 1, 4}, TestPlan{ScheduleKind::kAmdp, 4, 1, 8, 1},
                    TestPlan{ScheduleKind::kAmdp, 4, 1, 16}, TestPlan{ScheduleKind::kAmdp, 4, 2, 8},
                    TestPlan{ScheduleKind::kAmdp, 4, 2, 19}, TestPlan{ScheduleKind::kAmdp, 4, 2, 32, 1},
                    TestPlan{ScheduleKind::kAmdp, 8, 1, 8}, TestPlan{ScheduleKind::kAmdp, 8, 1, 16, 1},
                    TestPlan{ScheduleKind::kAmdp, 8, 1, 21}, TestPlan{ScheduleKind::kAmdp, 8, 2, 16},
                    TestPlan{ScheduleKind::kAmdp, 8, 2, 32}),
    [](const auto& test) { return name_of(test.param); });

INSTANTIATE_TEST_SUITE_P(Clockwork, AsynchronousPlan,
                         testing::Values(clockwork(2, 1, 1, 4), clockwork(2, 1, 2, 11), clockwork(3, 1, 1, 8),
                                         clockwork(4, 2, 1, 4), clockwork(4, 2, 2, 19), clockwork(4, 2, 1, 8, 1),
                                         clockwork(5, 1, 1, 11), clockwork(8, 4, 1, 16), clockwork(8, 2, 1, 13),
                                         clockwork(8, 4, 2, 21)),
                         [](const auto& test) { return name_of(test.param); });

// Depths that AMDP does not have, and one that is deep for both.
INSTANTIATE_TEST_SUITE_P(ClockworkElsewhere, AsynchronousPlan,
                         testing::Values(clockwork(6, 3, 1, 7), clockwork(6, 3, 2, 13), clockwork(7, 1, 1, 8),
                                         clockwork(7, 1, 2, 15), clockwork(9, 1, 1, 10), clockwork(9, 1, 2, 19),
                                         clockwork(16, 8, 1, 17), clockwork(16, 4, 2, 33)),
                         [](const auto& test) { return name_of(test.param); });

TEST(Clockwork, GivesTheBitsOfTheOracleWithAllThatKeepsGradientsOtherwise) {
  for (const TestPlan& plan : {clockwork(4, 2, 1, 9), clockwork(3, 1, 1, 8, 1)}) {
    for (const bool recomputes : {false, true}) {
      TrainOptions options = asynchronous_training(ModelFamily::kGpt, plan);
      options.model.precision = recomputes ? Precision::kFp32 : Precision::kBf16;
      options.model.recompute = recomputes;
      EXPECT_EQ(difference_from_oracle(options), "") << plan;
      options.stash = true;
      EXPECT_EQ(difference_from_oracle(options), "") << plan << " with a stash";
    }
  }
}

TEST(Amdp, GivesTheBitsOfTheOracleOnDeepPipelines) {
  EXPECT_EQ(difference_from_oracle(asynchronous_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 12, 1, 12})), "");
  EXPECT_EQ(difference_from_oracle(asynchronous_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 16, 1, 20})), "");
}

TEST(Amdp, GivesTheBitsOfTheOracleInBf16) {
  TrainOptions options = asynchronous_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  options.model.precision = Precision::kBf16;
  EXPECT_EQ(difference_from_oracle(options), "");
}

TEST(Amdp, GivesTheBitsOfTheOracleWithRecomputation) {
  for (const ModelFamily family : {ModelFamily::kGpt, ModelFamily::kBert}) {
    TrainOptions options = asynchronous_training(family, {ScheduleKind::kAmdp, 4, 1, 8});
    options.model.recompute = true;
    EXPECT_EQ(difference_from_oracle(options), "");
  }
}

TEST(Amdp, GivesTheBitsOfTheOracleOverManyWindows) {
  TrainOptions options = asynchronous_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 4});
  options.steps = 12;
  EXPECT_EQ(difference_from_oracle(options), "");
}

TEST(Amdp, DiffersFromSynchronousTrainingOnceWindowsMeet) {
  const TrainOptions options = asynchronous_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data);
  ASSERT_TRUE(runs.ok()) << runs.error();
  EXPECT_NE(difference_from(run_plain_training(options, *data), runs), "");
}

}  // namespace
}  // namespace everstep::trainer
