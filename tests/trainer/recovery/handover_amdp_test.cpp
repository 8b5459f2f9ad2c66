#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/recovery/checked_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

TEST(AmdpHandover, ARunThatNobodyDisturbsEqualsItsReference) {
  HandoverChain chain(chain_options(26, 6));
  run_checked(chain, {ScheduleKind::kAmdp, 4, 2, names(0, 8), {}, {}}, RunEnd::kAllSteps);
}

TEST(AmdpHandover, AChainOfPlansEqualsTheReferenceOfItsHistory) {
  HandoverChain chain(chain_options(26, 15));
  run_checked(chain, {ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, {}, after_update(1)});
  EXPECT_EQ(chain.position(), Position{3 * 26}) << "the window that had begun is finished";
  run_checked(chain, {ScheduleKind::kAmdp, 2, 1, {3, 9}, {0, 1, 2}, after_round(16)});
  EXPECT_EQ(chain.position(), Position{4 * 26 + 8});
  run_checked(chain, {ScheduleKind::kAmdp, 8, 1, names(3, 8), {}, after_round(3)});
  EXPECT_TRUE(chain.is_inside_window());
  run_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {3, 30, 4}, names(5, 6), after_round(4)});
  run_checked(chain, {ScheduleKind::kAmdp, 4, 2, names(30, 8), {3, 4}, after_round(3)});
  run_checked(chain, {ScheduleKind::kAmdp, 8, 3, names(30, 24), {}, after_round(3)});
  EXPECT_TRUE(chain.is_inside_window());
  run_checked(chain, {ScheduleKind::kOneFOneB, 1, 1, {30}, names(31, 23), after_update(9)});
  run_checked(chain, {ScheduleKind::kAmdp, 4, 3, names(30, 12), {}, after_round(5)});
  run_checked(chain, {ScheduleKind::kAmdp, 2, 2, names(34, 4), {30, 31, 32, 33, 38, 39, 40, 41}, {}},
              RunEnd::kAllSteps);
  EXPECT_EQ(chain.position(), Position{15 * 26});
}

// A stop in any super-round of a full pipeline: whatever it falls on, all chunks are at the window's version.
class AmdpStops : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(AmdpStops, InAnySuperRoundEqualTheReference) {
  const auto [depth, preload] = GetParam();
  const int rounds = (18 + depth - 1) / depth;
  for (std::int64_t round = 0; round < 3 * rounds; ++round) {
    SCOPED_TRACE(round);
    TrainOptions options = chain_options(18, 5);
    options.schedule.preload = preload;
    HandoverChain chain(options);
    run_checked(chain, {ScheduleKind::kAmdp, depth, 1, names(0, depth), {}, after_round(round)});
    const std::int64_t inside = (round % rounds + 1) * depth;
    EXPECT_EQ(chain.position(), Position{round / rounds * 18 + std::min<std::int64_t>(18, inside)});
    run_checked(chain, {ScheduleKind::kAmdp, 4, 1, {9, 0, 8, 1}, names(2, depth - 2), {}}, RunEnd::kAllSteps);
  }
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<int, int>>& test) {
  return "D" + std::to_string(std::get<0>(test.param)) + "_preload" + std::to_string(std::get<1>(test.param));
}

INSTANTIATE_TEST_SUITE_P(OfAllDepths, AmdpStops,
                         ::testing::Combine(::testing::Values(2, 4, 8), ::testing::Values(1, 2)), name_of);

TEST(AmdpHandover, StashedWeightsEqualTheReference) {
  TrainOptions options = chain_options(26, 8);
  options.stash = true;
  HandoverChain chain(options);
  run_checked(chain, {ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, {}, after_round(10)});
  run_checked(chain, {ScheduleKind::kAmdp, 2, 2, {5, 0, 6, 1}, {2, 3}, after_update(4)});
  run_checked(chain, {ScheduleKind::kAmdp, 8, 1, names(0, 8), {}, {}}, RunEnd::kAllSteps);
}

// Cuts that are saved on the way take their part of the past with them; what the workers bring is the rest.
TEST(AmdpHandover, BringsWhatIsNotSavedOfThePast) {
  for (const CheckpointPolicy& policy : {CheckpointPolicy{2, 0, false}, CheckpointPolicy{0, 3, false}}) {
    TrainOptions options = chain_options(26, 9);
    options.checkpoints = policy;
    HandoverChain chain(options);
    run_checked(chain, {ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, {}, after_round(18)});
    run_checked(chain, {ScheduleKind::kAmdp, 2, 2, {5, 0, 6, 1}, {2, 3}, after_round(20)});
    run_checked(chain, {ScheduleKind::kAmdp, 2, 1, {0, 1}, {5, 6}, {}}, RunEnd::kAllSteps);
  }
}

TEST(AmdpHandover, RandomChainsEqualTheReferenceOfTheirHistory) {
  run_random_chains(100, 8, {ScheduleKind::kAmdp, ScheduleKind::kAmdp, ScheduleKind::kOneFOneB});
}

}  // namespace
}  // namespace everstep::trainer
