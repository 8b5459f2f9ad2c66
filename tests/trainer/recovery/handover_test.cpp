#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/recovery/checked_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;

void run_undisturbed(HandoverChain& chain, const TestGeneration& next, RunEnd expected = RunEnd::kHandOver) {
  run_checked(chain, next, expected, difference_from_undisturbed);
}

// Depths 1, 2, 4, 8 and widths 1, 2, 3; people who stay, change places, come, hand over and leave.
TEST(Handover, TenSynchronousGenerationsEndWithTheBitsOfARunThatNobodyDisturbed) {
  HandoverChain chain(chain_options(26, 11));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_update(1)});
  EXPECT_EQ(chain.position(), Position{2 * 26});
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 4, 1, {3, 0, 2, 1}, {}, after_round(2)});
  EXPECT_EQ(chain.position(), Position{2 * 26 + 12});
  run_undisturbed(chain, {ScheduleKind::kTwoDirections, 4, 2, names(0, 8), {}, after_round(0)});
  EXPECT_EQ(chain.position(), Position{2 * 26 + 20});
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 1, 1, {20}, names(0, 8), after_round(1)});
  EXPECT_EQ(chain.position(), Position{2 * 26 + 22});
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 8, 3, names(30, 24), {20}, after_round(1)});
  EXPECT_EQ(chain.position(), Position{3 * 26 + 24});
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 2, 3, names(48, 6), names(30, 18), after_update(4)});
  EXPECT_EQ(chain.position(), Position{5 * 26});
  run_undisturbed(chain, {ScheduleKind::kGpipe, 3, 2, names(51, 6), {48}, after_round(8)});  // 49 and 50 are gone
  EXPECT_EQ(chain.position(), Position{6 * 26 + 24});
  run_undisturbed(chain, {ScheduleKind::kInterleaved, 4, 1, {53, 54, 1, 2}, {51, 52, 55, 56}, after_round(2)});
  EXPECT_EQ(chain.position(), Position{7 * 26 + 8});
  run_undisturbed(chain, {ScheduleKind::kTwoDirections, 8, 1, names(0, 8), {53, 54}, after_round(4)});
  EXPECT_EQ(chain.position(), Position{8 * 26 + 16});
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 5, 1, names(3, 5), {0, 1, 2}, {}}, RunEnd::kAllSteps);
  EXPECT_EQ(chain.position(), Position{11 * 26});
}

TEST(Handover, AWorkerThatIsGoneIsNotMissedWhileAnotherHoldsTheSame) {
  HandoverChain chain(chain_options(13, 6));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 2, {0, 1, 2, 3}, {}, after_update(2)});
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 3, 1, {2, 9, 1}, {}, {}}, RunEnd::kAllSteps);
}

TEST(Handover, NamesTheBlockThatNobodyIsLeftToHold) {
  HandoverChain chain(chain_options(13, 6));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 3, 1, {0, 1, 2}, {}, after_update(2)});
  const auto lost = chain.run({ScheduleKind::kOneFOneB, 2, 1, {0, 2}, {}, {}});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(lost.error().message, HasSubstr("weights of block 4"));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 2}, {1}, {}}, RunEnd::kAllSteps);
}

TEST(Handover, InsideAWindowTheWriterOfItsGradientsIsMissed) {
  HandoverChain chain(chain_options(13, 6));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 2, {0, 1, 2, 3}, {}, after_round(1)});
  ASSERT_TRUE(chain.is_inside_window());
  const auto lost = chain.run({ScheduleKind::kOneFOneB, 2, 1, {2, 3}, {}, {}});
  ASSERT_FALSE(lost);
  EXPECT_THAT(lost.error().message, HasSubstr("gradients of block 0"));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {2, 3}, {0, 1}, {}}, RunEnd::kAllSteps);
}

TEST(Handover, TheOriginOfAGenerationThatIsBrokenOffIsKept) {
  HandoverChain chain(chain_options(26, 5));
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 2, 2, {0, 1, 2, 3}, {}, after_round(8)});
  ASSERT_TRUE(chain.is_inside_window());
  const Position origin = chain.position();
  for (const std::int64_t round : {0, 1}) {
    const auto broken = chain.run({ScheduleKind::kTwoDirections, 4, 1, {2, 5, 3, 6}, {0, 1}, broken_off_in(round)});
    ASSERT_FALSE(broken);
    EXPECT_EQ(chain.position(), origin);
    EXPECT_EQ(difference_from_undisturbed(chain), "");
  }
  run_undisturbed(chain, {ScheduleKind::kGpipe, 3, 1, {7, 8, 9}, {0, 1, 2, 3}, {}}, RunEnd::kAllSteps);
}

TEST(Handover, TwoInsideOneWindowLoseNothing) {
  HandoverChain chain(chain_options(26, 3));
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(14)});
  EXPECT_EQ(chain.position(), Position{26 + 4});
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 3, 1, {2, 0, 1}, {}, after_round(1)});
  EXPECT_EQ(chain.position(), Position{26 + 10});
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 1, 2, {1, 5}, {2, 0}, after_round(2)});
  EXPECT_EQ(chain.position(), Position{26 + 16});
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {5, 1}, {}, {}}, RunEnd::kAllSteps);
  // Who ran what of the window is told apart.
  std::vector<std::pair<int, int>> ranges;
  for (const WindowHistory& entry : chain.history()) {
    if (entry.window == 1) ranges.emplace_back(entry.first, entry.end);
  }
  EXPECT_THAT(ranges, ::testing::ElementsAre(std::pair(0, 4), std::pair(4, 10), std::pair(10, 16), std::pair(16, 26)));
}

TEST(Handover, BringsMastersUnderBf16) {
  TrainOptions options = chain_options(26, 5);
  options.model.precision = Precision::kBf16;
  HandoverChain chain(options);
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(16)});
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 4, 1, {5, 6, 7, 0}, {1}, {}}, RunEnd::kAllSteps);
}

TEST(Handover, FloatSumsGoOnFromWhereTheyWere) {
  TrainOptions options = chain_options(26, 3);
  options.accumulation = Accumulation::kFloat;
  HandoverChain chain(options);
  // One replica of each stage, so that every sum is made in the order of minibatches.
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(16)});
  EXPECT_TRUE(chain.is_inside_window());
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 3, 1, {1, 2, 3}, {0}, {}}, RunEnd::kAllSteps);
}

TEST(Handover, AWindowThatLostAGradientBeforeItIsSkippedAfterIt) {
  HandoverChain chain(chain_options(26, 4));
  chain.poisoned = {26 + 3};
  run_undisturbed(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, after_round(16)});
  ASSERT_TRUE(chain.is_inside_window());
  ASSERT_TRUE(chain.run({ScheduleKind::kAmdpSync, 4, 1, {1, 2, 3, 4}, {0}, {}}));
  EXPECT_EQ(difference_from_undisturbed(chain), "");
  ASSERT_EQ(chain.steps().size(), 4U);
  for (const StepReport& step : chain.steps()) EXPECT_EQ(step.skipped, step.step == 2) << step.step;
}

TEST(Handover, WhoHasEverythingReceivesNothing) {
  HandoverChain chain(chain_options(26, 6));
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 2, 2, {0, 1, 2, 3}, {}, after_round(8)});
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 2, 2, {0, 1, 2, 3}, {}, after_update(3)});
  EXPECT_EQ(chain.received_bytes(), 0);
  run_undisturbed(chain, {ScheduleKind::kAmdpSync, 2, 2, {0, 1, 2, 4}, {3}, {}}, RunEnd::kAllSteps);
  EXPECT_GT(chain.received_bytes(), 0);
}

TEST(Handover, RandomSynchronousChainsEndWithTheBitsOfARunThatNobodyDisturbed) {
  run_random_chains(
      0, 5, {ScheduleKind::kOneFOneB, ScheduleKind::kGpipe, ScheduleKind::kTwoDirections, ScheduleKind::kAmdpSync},
      difference_from_undisturbed);
}

}  // namespace
}  // namespace everstep::trainer
