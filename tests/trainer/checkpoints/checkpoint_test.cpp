#include "trainer/checkpoints/checkpoint.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using ::testing::ElementsAre;

DueCut at_update() {
  DueCut due;
  due.at_update = true;
  return due;
}

DueCut after_round(int round) {
  DueCut due;
  due.after_round = round;
  return due;
}

CheckpointPolicy every_rounds(int rounds) {
  CheckpointPolicy policy;
  policy.every_rounds = rounds;
  return policy;
}

// The rounds after which a run of windows with so many rounds is cut, if nobody is ever busy.
std::vector<int> cuts_of(const CheckpointPolicy& policy, int windows, int rounds) {
  std::vector<int> cuts;
  std::optional<int> inside = first_cut_inside(policy, 0, rounds);
  for (int window = 0; window < windows; ++window) {
    if (inside) cuts.push_back(window * rounds + *inside + 1);
    const int done = (window + 1) * rounds;
    const DueCut due = due_cut(policy, Version{window + 1}, done, rounds);
    if (due.at_update) cuts.push_back(done);
    inside = due.after_round;
  }
  return cuts;
}

TEST(DueCut, IsEveryNthUpdate) {
  CheckpointPolicy policy;
  policy.every_updates = 3;
  for (int made = 1; made <= 9; ++made) {
    EXPECT_EQ(due_cut(policy, Version{made}, 4 * made, 4), made % 3 == 0 ? at_update() : DueCut{}) << made;
  }
}

TEST(DueCut, CountsRoundsOverWindows) {
  EXPECT_THAT(cuts_of(every_rounds(3), 3, 4), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(cuts_of(every_rounds(6), 6, 4), ElementsAre(6, 12, 18, 24));
  EXPECT_THAT(cuts_of(every_rounds(8), 6, 4), ElementsAre(8, 16, 24));
  EXPECT_THAT(cuts_of(every_rounds(1), 3, 1), ElementsAre(1, 2, 3));
}

// Where the first rounds of a window cannot be cut.
TEST(DueCut, WaitsUntilTheWindowCanBeCutOrComesBeforeIt) {
  EXPECT_EQ(due_cut(every_rounds(5), Version{1}, 8, 8, 4), after_round(3)) << "due after round 1";
  EXPECT_EQ(due_cut(every_rounds(5), Version{1}, 9, 9, 7), after_round(6)) << "due after round 0";
  EXPECT_EQ(due_cut(every_rounds(5), Version{1}, 9, 9, 8), after_round(7));
  EXPECT_EQ(due_cut(every_rounds(5), Version{1}, 9, 9, 9), at_update()) << "after its last round there is none";
  EXPECT_EQ(due_cut(every_rounds(20), Version{1}, 9, 9, 9), DueCut{}) << "due in the window after";
  EXPECT_EQ(first_cut_inside(every_rounds(2), 0, 6, 1), 1);
  EXPECT_EQ(first_cut_inside(every_rounds(2), 0, 6, 5), 4);
  EXPECT_EQ(first_cut_inside(every_rounds(2), 0, 6, 6), std::nullopt);
}

TEST(DueCut, IsTakenOncePerWindowAndThenPreferablyAtTheUpdate) {
  EXPECT_THAT(cuts_of(every_rounds(2), 3, 4), ElementsAre(2, 4, 8, 12));
  EXPECT_THAT(cuts_of(every_rounds(2), 4, 5), ElementsAre(2, 6, 10, 16, 20));
  CheckpointPolicy policy = every_rounds(3);
  policy.every_updates = 5;
  EXPECT_EQ(due_cut(policy, Version{5}, 20, 4), at_update());
  EXPECT_EQ(due_cut(policy, Version{6}, 24, 4), at_update());
  EXPECT_EQ(due_cut(policy, Version{7}, 28, 4), after_round(1));
}

TEST(DueCut, IsNoneThatNobodyAskedFor) {
  for (int made = 1; made < 5; ++made) EXPECT_EQ(due_cut({}, Version{made}, 4 * made, 4), DueCut{});
}

TEST(FirstCutInside, IsNeverTheLastRound) {
  for (int every = 0; every <= 6; ++every) {
    for (int done = 0; done <= 6; ++done) {
      for (int rounds = 0; rounds <= 6; ++rounds) {
        std::optional<int> expected;
        for (int round = rounds - 2; every > 0 && round >= 0; --round) {
          if ((done + round + 1) % every == 0) expected = round;
        }
        EXPECT_EQ(first_cut_inside(every_rounds(every), done, rounds), expected) << every << done << rounds;
      }
    }
  }
}

}  // namespace
}  // namespace everstep::trainer
