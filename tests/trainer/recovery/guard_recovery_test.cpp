#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/recovery/guarded_chain.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "tests/trainer/recovery/random_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;
using ::testing::HasSubstr;

constexpr int kWindow = 14;

// Every origin is checked where it comes to be: what is wrong once may cancel out later.
void run_checked(GuardedChain& chain, const GuardedGeneration& next) {
  const Status ran = chain.run(next);
  ASSERT_TRUE(ran) << ran.error();
  ASSERT_GE(chain.version().value, chain.newest_update() - 1) << "all had the version before";
  ASSERT_EQ(chain.difference_from_reference(), "") << "at version " << chain.version();
}

void finish_checked(GuardedChain& chain, const GuardedGeneration& next) {
  run_checked(chain, next);
  EXPECT_EQ(chain.version(), Version{chain.options().steps});
}

GuardedGeneration amdp4(std::map<int, CallTest> dies, int redundancy = 1) {
  return {ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}, redundancy, {}, std::move(dies)};
}

TEST(GuardRecovery, ARunThatNobodyDisturbsEqualsItsReferenceAndIsCoveredAtItsEnd) {
  for (const int redundancy : {0, 1, 3}) {
    GuardedChain chain(chain_options(kWindow, 5));
    finish_checked(chain, amdp4({}, redundancy));
    // One that dies after the drain is covered, unless nobody guards.
    GuardedChain covered(chain_options(kWindow, 5));
    const Status ran = covered.run(amdp4({{2, nullptr}}, redundancy));
    EXPECT_EQ(ran.ok(), redundancy > 0);
    EXPECT_EQ(covered.version(), Version{redundancy > 0 ? 5 : 0});
  }
}

TEST(GuardRecovery, TrainingGoesOnFromTheCopiesOfThoseWhoAreLeft) {
  GuardedChain chain(chain_options(kWindow, 9));
  run_checked(chain, amdp4({{2, at_send(FrameKind::kInputGradient, 2)}}));
  EXPECT_GE(chain.version(), Version{1});
  run_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {3, 0, 1}, 1, {}, {{3, at_send(FrameKind::kActivation, 4, 5)}}});
  EXPECT_GE(chain.version(), Version{3});
  run_checked(chain, {ScheduleKind::kOneFOneB, 2, 2, {1, 7, 8, 0}, 1, {}, {{7, at_send(FrameKind::kTotal, 6)}}});
  EXPECT_GE(chain.version(), Version{5});
  run_checked(chain, {ScheduleKind::kOneFOneB, 1, 3, {1, 8, 0}, 1, {}, {{0, at_send(FrameKind::kRecord, 7)}}});
  finish_checked(chain, {ScheduleKind::kAmdp, 2, 1, {8, 1}});
}

TEST(GuardRecovery, SynchronousPlansOfAllKindsAreCovered) {
  GuardedChain chain(chain_options(kWindow, 9));
  run_checked(chain, {ScheduleKind::kGpipe, 3, 1, {0, 1, 2}, 1, {}, {{1, at_send(FrameKind::kActivation, 1, 2)}}});
  run_checked(chain,
              {ScheduleKind::kTwoDirections, 4, 1, {0, 2, 5, 6}, 1, {}, {{0, at_send(FrameKind::kActivation, 3)}}});
  run_checked(chain, {ScheduleKind::kAmdpSync, 4, 2, names(0, 8), 1, {}, {{6, at_send(FrameKind::kActivation, 5)}}});
  finish_checked(chain, {ScheduleKind::kOneFOneB, 1, 1, {9}, 1, {0, 1, 2, 3, 4, 5, 7}});
}

TEST(GuardRecovery, TwoDeathsAtOnceAreCoveredByTwoGuards) {
  for (const auto& dead : {std::vector<int>{0, 1}, {1, 2}, {0, 3}, {2, 3}}) {
    GuardedChain chain(chain_options(kWindow, 6));
    std::map<int, CallTest> dies;
    for (const int name : dead) dies[name] = at_send(FrameKind::kInputGradient, 3);
    const GuardedGeneration next = amdp4(dies, 2);
    run_checked(chain, next);
    EXPECT_GE(chain.version(), Version{2});
    finish_checked(chain, {ScheduleKind::kOneFOneB, 2, 1, left_of(next)});
  }
}

TEST(GuardRecovery, MoreDeathsThanGuardsAreNotCovered) {
  GuardedChain chain(chain_options(kWindow, 6));
  // The guard of an owner is the worker after it.
  const CallTest test = at_send(FrameKind::kInputGradient, 3);
  const Status ran = chain.run(amdp4({{1, test}, {2, test}}));
  ASSERT_FALSE(ran);
  EXPECT_THAT(ran.error().message, HasSubstr("no version in common"));
}

TEST(GuardRecovery, ADeathWhileItsCopiesTravelLeavesTheVersionBefore) {
  for (const int frames : {0, 1, 2}) {
    GuardedChain chain(chain_options(kWindow, 7));
    run_checked(chain, amdp4({{1, at_send(FrameKind::kCopy, 4, frames)}}));
    EXPECT_EQ(chain.version(), Version{3}) << "of version 4 the guard has " << frames << " of 3 parts";
    finish_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {0, 3, 2}});
  }
}

TEST(GuardRecovery, ADeathAfterItsCopiesCameLosesOnlyTheWindowAtHand) {
  GuardedChain chain(chain_options(kWindow, 7));
  run_checked(chain, amdp4({{1, at_send(FrameKind::kRecord, 4)}}));
  EXPECT_EQ(chain.version(), Version{4});
}

TEST(GuardRecovery, ADeathDuringTheBroadcastOfWeightsIsCovered) {
  for (const int name : {0, 1, 2, 3}) {
    GuardedChain chain(chain_options(kWindow, 7));
    run_checked(chain, amdp4({{name, at_send(FrameKind::kWeights, 3)}}));
    EXPECT_EQ(chain.version(), Version{3});
    std::vector<int> left{0, 1, 2, 3};
    std::erase(left, name);
    finish_checked(chain, {ScheduleKind::kOneFOneB, 2, 1, {9, left[0]}, 1, {left[1], left[2]}});
  }
}

// Nothing is known of the new plan before everybody has met: the origin is what it was.
TEST(GuardRecovery, ADeathBeforeTheFirstExchangeLeavesTheOrigin) {
  GuardedChain chain(chain_options(kWindow, 6));
  // Nobody else has anything of version 2 from it, and of version 1 both guards have everything.
  run_checked(chain, amdp4({{1, at_send(FrameKind::kCopy, 2)}}, 2));
  const Version origin = chain.version();
  ASSERT_EQ(origin, Version{1});
  run_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {3, 0, 2}, 1, {}, {{3, at_send(FrameKind::kCopy, 0, 1)}}});
  EXPECT_EQ(chain.version(), origin);
  finish_checked(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 2}});
}

// It may take the last copy of the origin along. Then the version before is still there: it was everybody's.
TEST(GuardRecovery, ASecondDeathBeforeTheFirstExchangeCostsOneVersionAtMost) {
  for (const int second : {0, 2, 3}) {
    GuardedChain chain(chain_options(kWindow, 6));
    run_checked(chain, amdp4({{1, at_send(FrameKind::kInputGradient, 2)}}, 2));
    const Version origin = chain.version();
    std::vector<int> left{0, 2, 3};
    run_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, left, 1, {}, {{second, at_send(FrameKind::kCopy, 0, 1)}}});
    EXPECT_GE(chain.version().value, origin.value - 1);
    EXPECT_LE(chain.version(), origin);
    std::erase(left, second);
    finish_checked(chain, {ScheduleKind::kOneFOneB, 2, 1, left});
  }
}

TEST(GuardRecovery, ASkippedUpdateMakesAVersionToo) {
  GuardedChain chain(chain_options(kWindow, 6));
  chain.poisoned = {2 * kWindow + 3};
  run_checked(chain, amdp4({{1, at_send(FrameKind::kRecord, 3)}}));
  EXPECT_EQ(chain.version(), Version{3});
  EXPECT_TRUE(chain.history().back().skipped);
  EXPECT_EQ(chain.state().value().applied, 2);
  finish_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {0, 3, 2}});
}

TEST(GuardRecovery, KeepsMastersUnderBf16) {
  TrainOptions options = chain_options(kWindow, 5);
  options.model.precision = Precision::kBf16;
  GuardedChain chain(options);
  run_checked(chain, amdp4({{2, at_send(FrameKind::kInputGradient, 2)}}));
  finish_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {0, 3, 1}});
}

TEST(GuardRecovery, StashedWeightsDoNotDisturbCopies) {
  TrainOptions options = chain_options(kWindow, 6);
  options.stash = true;
  GuardedChain chain(options);
  run_checked(chain, amdp4({{2, at_send(FrameKind::kInputGradient, 3, 4)}}));
  finish_checked(chain, {ScheduleKind::kAmdp, 2, 1, {0, 3}, 1, {1}});
}

// Cuts take the past with them, at updates and inside windows; what is not committed is told again.
TEST(GuardRecovery, ThePastIsToldOnceWhateverWasHandedToACheckpoint) {
  for (const CheckpointPolicy& policy : {CheckpointPolicy{2, 0, false}, CheckpointPolicy{0, 3, false}}) {
    TrainOptions options = chain_options(kWindow, 8);
    options.checkpoints = policy;
    GuardedChain chain(options);
    run_checked(chain, amdp4({{2, at_send(FrameKind::kInputGradient, 3)}}));
    EXPECT_EQ(std::ssize(chain.history()), chain.version().value);
    run_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, {0, 3, 1}, 1, {}, {{3, at_send(FrameKind::kRecord, 5)}}});
    finish_checked(chain, {ScheduleKind::kOneFOneB, 2, 1, {0, 1}});
    EXPECT_EQ(std::ssize(chain.history()), 8);
  }
}

}  // namespace
}  // namespace everstep::trainer
