#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// Plain training is the same for every plan with as large a window.
const OracleRun& plain_training(ModelFamily family, int window) {
  static std::map<std::tuple<ModelFamily, int>, OracleRun> known;
  const auto [place, is_new] = known.try_emplace({family, window});
  if (is_new) {
    const TrainOptions options = under_plan(tiny_training(family), {ScheduleKind::kOneFOneB, 1, 1, window});
    place->second = run_plain_training(options, *shipped_corpus(options.model));
  }
  return place->second;
}

class SynchronousPlan : public testing::TestWithParam<std::tuple<ModelFamily, TestPlan>> {};

TEST_P(SynchronousPlan, GivesTheBitsOfPlainTraining) {
  const auto& [family, plan] = GetParam();
  const TrainOptions options = under_plan(tiny_training(family), plan);
  const OracleRun& plain = plain_training(family, plan.window);
  for (const OracleStep& step : plain.steps) {
    ASSERT_GT(step.gradient_norm, options.adam.clip_norm) << "clipping must be at work";
  }
  EXPECT_EQ(difference_from(plain, run_in_threads(options, *shipped_corpus(options.model))), "");
}

std::string name_of_case(const testing::TestParamInfo<SynchronousPlan::ParamType>& info) {
  const bool gpt = std::get<0>(info.param) == ModelFamily::kGpt;
  return (gpt ? "Gpt_" : "Bert_") + name_of(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    Gpt, SynchronousPlan,
    testing::Combine(
        testing::Values(ModelFamily::kGpt),
        testing::Values(TestPlan{ScheduleKind::kOneFOneB, 1, 1, 16}, TestPlan{ScheduleKind::kOneFOneB, 1, 2, 11},
                        TestPlan{ScheduleKind::kOneFOneB, 2, 1, 16}, TestPlan{ScheduleKind::kOneFOneB, 3, 1, 11},
                        TestPlan{ScheduleKind::kOneFOneB, 3, 2, 16}, TestPlan{ScheduleKind::kOneFOneB, 4, 1, 11},
                        TestPlan{ScheduleKind::kOneFOneB, 4, 2, 16}, TestPlan{ScheduleKind::kGpipe, 2, 2, 11},
                        TestPlan{ScheduleKind::kGpipe, 4, 1, 16}, TestPlan{ScheduleKind::kInterleaved, 2, 1, 16},
                        TestPlan{ScheduleKind::kInterleaved, 4, 2, 11},
                        TestPlan{ScheduleKind::kTwoDirections, 2, 1, 16},
                        TestPlan{ScheduleKind::kTwoDirections, 4, 2, 16},
                        TestPlan{ScheduleKind::kTwoDirections, 6, 1, 11}, TestPlan{ScheduleKind::kAmdpSync, 2, 1, 11},
                        TestPlan{ScheduleKind::kAmdpSync, 2, 2, 16}, TestPlan{ScheduleKind::kAmdpSync, 4, 1, 16},
                        TestPlan{ScheduleKind::kAmdpSync, 4, 2, 11}, TestPlan{ScheduleKind::kAmdpSync, 8, 1, 11},
                        TestPlan{ScheduleKind::kAmdpSync, 8, 2, 16}, clockwork_sync(3, 1, 1, 11),
                        clockwork_sync(4, 2, 2, 16), clockwork_sync(8, 2, 1, 11))),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(Bert, SynchronousPlan,
                         testing::Combine(testing::Values(ModelFamily::kBert),
                                          testing::Values(TestPlan{ScheduleKind::kOneFOneB, 1, 2, 16},
                                                          TestPlan{ScheduleKind::kOneFOneB, 3, 1, 16},
                                                          TestPlan{ScheduleKind::kOneFOneB, 4, 2, 11},
                                                          TestPlan{ScheduleKind::kGpipe, 3, 1, 11},
                                                          TestPlan{ScheduleKind::kInterleaved, 4, 1, 16},
                                                          TestPlan{ScheduleKind::kTwoDirections, 4, 1, 11},
                                                          TestPlan{ScheduleKind::kAmdpSync, 4, 2, 16},
                                                          TestPlan{ScheduleKind::kAmdpSync, 8, 1, 16},
                                                          clockwork_sync(5, 1, 1, 11), clockwork_sync(6, 3, 1, 16))),
                         name_of_case);

}  // namespace
}  // namespace everstep::trainer
