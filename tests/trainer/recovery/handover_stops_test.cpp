#include <algorithm>

#include <gtest/gtest.h>

#include "tests/trainer/recovery/handover_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

// ---- which of two stops holds, and stops at the edges of a run ----

TestStop with_window_end(TestStop stop) {
  stop.and_at_window_end = true;
  return stop;
}

TEST(HandoverStops, InsideAWindowOneHoldsAlsoIfAnotherAsksForTheWindowsEnd) {
  HandoverChain chain(chain_options(26, 4));
  const auto end = chain.run({ScheduleKind::kOneFOneB, 2, 2, {0, 1, 2, 3}, {}, with_window_end(after_round(3))});
  ASSERT_TRUE(end) << end.error();
  EXPECT_EQ(*end, RunEnd::kHandOver) << "a window that is not finished cannot be saved as the end";
  EXPECT_EQ(chain.position(), Position{16});
  EXPECT_EQ(difference_from_undisturbed(chain), "");
}

// Asked for so late that the update comes first: all stop at the window's end, whatever the promises come to.
TEST(HandoverStops, AWindowsEndHoldsIfItComesFirst) {
  for (const ScheduleKind kind : {ScheduleKind::kAmdpSync, ScheduleKind::kAmdp}) {
    HandoverChain chain(chain_options(26, 8));
    // The last super-round of window 0 is number 6: the stop would lie after round 0 of window 1.
    const auto end = chain.run({kind, 4, 1, {0, 1, 2, 3}, {}, with_window_end(after_round(7))});
    ASSERT_TRUE(end) << end.error();
    const bool is_synchronous = kind == ScheduleKind::kAmdpSync;
    EXPECT_EQ(*end, is_synchronous ? RunEnd::kSaveAndEnd : RunEnd::kHandOver);
    EXPECT_EQ(chain.position(), is_synchronous ? Position{26} : Position{26 + 4});
    EXPECT_EQ(difference_from_reference(chain), "");
    ASSERT_TRUE(chain.run({kind, 2, 1, {3, 4}, {0, 1, 2}, {}}));
    EXPECT_EQ(difference_from_reference(chain), "");
  }
}

TEST(HandoverStops, WhatOneWorkerWishesAtAWindowsEndAllDo) {
  HandoverChain chain(chain_options(26, 6));
  TestStop stop = after_update(2);
  stop.how = WindowStop::kSaveAndEnd;
  const auto end = chain.run({ScheduleKind::kOneFOneB, 2, 1, {0, 1}, {}, stop});
  ASSERT_TRUE(end) << end.error();
  EXPECT_EQ(*end, RunEnd::kSaveAndEnd);
  EXPECT_EQ(chain.position(), Position{3 * 26});
  EXPECT_EQ(difference_from_undisturbed(chain), "");
}

TEST(HandoverStops, InTheLastWindowLeaveItsRestToTheNextGeneration) {
  for (const ScheduleKind kind : {ScheduleKind::kAmdpSync, ScheduleKind::kAmdp}) {
    HandoverChain chain(chain_options(26, 3));
    const auto end = chain.run({kind, 4, 1, {0, 1, 2, 3}, {}, after_round(2 * 7 + 3)});
    ASSERT_TRUE(end) << end.error();
    EXPECT_EQ(*end, RunEnd::kHandOver);
    EXPECT_EQ(chain.position(), Position{2 * 26 + 16});
    ASSERT_TRUE(chain.run({kind, 2, 1, {3, 4}, {0, 1, 2}, {}}));
    EXPECT_EQ(chain.position(), Position{3 * 26});
    EXPECT_EQ(difference_from_reference(chain), "");
  }
}

TEST(HandoverStops, ThatComeWithTheLastUpdateChangeNothing) {
  for (const ScheduleKind kind : {ScheduleKind::kAmdpSync, ScheduleKind::kAmdp}) {
    for (const TestStop& stop : {after_round(3 * 7 - 1), after_round(3 * 7), after_update(2), after_update(3)}) {
      HandoverChain chain(chain_options(26, 3));
      const auto end = chain.run({kind, 4, 1, {0, 1, 2, 3}, {}, stop});
      ASSERT_TRUE(end) << end.error();
      EXPECT_EQ(*end, RunEnd::kAllSteps);
      EXPECT_EQ(chain.position(), Position{3 * 26});
      EXPECT_EQ(difference_from_reference(chain), "");
    }
  }
}

// Evaluations drain the pipeline and begin another list of ops; super-rounds are counted through them.
TEST(HandoverStops, AtAnEvaluationEndBeforeOrAfterIt) {
  for (const ScheduleKind kind : {ScheduleKind::kAmdpSync, ScheduleKind::kAmdp}) {
    for (std::int64_t round = 5; round <= 16; ++round) {
      SCOPED_TRACE(round);
      TrainOptions options = chain_options(26, 6);
      options.evaluate_every = 1;
      options.evaluate_minibatches = 4;
      HandoverChain chain(options);
      const auto end = chain.run({kind, 4, 1, {0, 1, 2, 3}, {}, after_round(round)});
      ASSERT_TRUE(end) << end.error();
      EXPECT_EQ(*end, RunEnd::kHandOver);
      EXPECT_EQ(chain.position(), Position{round / 7 * 26 + std::min<std::int64_t>(26, (round % 7 + 1) * 4)});
      ASSERT_EQ(difference_from_reference(chain), "");
      ASSERT_TRUE(chain.run({kind, 2, 1, {3, 4}, {0, 1, 2}, {}}));
      EXPECT_EQ(difference_from_reference(chain), "");
    }
  }
}

}  // namespace
}  // namespace everstep::trainer
