#include "trainer/checkpoint.h"

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

CutChoice choice_at(const CheckpointPolicy& policy, int made, bool all_idle = true, int rounds = 4) {
  return choose_cut(policy, Version{made}, rounds, rounds, all_idle);
}

CutChoice at_update() {
  CutChoice choice;
  choice.at_update = true;
  return choice;
}

CutChoice after_round(int round) {
  CutChoice choice;
  choice.after_round = round;
  return choice;
}

CutChoice skipped() {
  CutChoice choice;
  choice.skipped = true;
  return choice;
}

TEST(ChooseCut, TakesEveryNthUpdateWhenAllAreIdle) {
  CheckpointPolicy policy;
  policy.every_updates = 3;
  for (int made = 1; made <= 9; ++made) {
    EXPECT_EQ(choice_at(policy, made), made % 3 == 0 ? at_update() : CutChoice{}) << made;
    EXPECT_EQ(choice_at(policy, made, false), made % 3 == 0 ? skipped() : CutChoice{}) << made;
  }
}

TEST(ChooseCut, TakesTheFirstCutInsideAWindow) {
  CheckpointPolicy policy;
  policy.every_rounds = 3;
  EXPECT_EQ(choice_at(policy, 1), after_round(2));
  EXPECT_EQ(choice_at(policy, 1, false), skipped());
  policy.every_rounds = 1;
  EXPECT_EQ(choice_at(policy, 1, true, 1), at_update());
}

TEST(ChooseCut, PrefersTheUpdateToWhatFollows) {
  CheckpointPolicy policy;
  policy.every_rounds = 2;  // the window's last round is one of them
  EXPECT_EQ(choice_at(policy, 5), at_update());
  policy = {.every_updates = 5, .every_rounds = 3, .at_end = false};
  EXPECT_EQ(choice_at(policy, 5), at_update());
  EXPECT_EQ(choice_at(policy, 6), after_round(2));
}

TEST(ChooseCut, LooksAtTheRoundsOfBothWindows) {
  CheckpointPolicy policy;
  policy.every_rounds = 2;
  EXPECT_EQ(choose_cut(policy, Version{1}, 3, 5, true), after_round(1));  // the first window was begun inside
  EXPECT_EQ(choose_cut(policy, Version{1}, 2, 5, true), at_update());
}

TEST(ChooseCut, NeverTakesOneThatNobodyAskedFor) {
  for (const bool all_idle : {true, false}) {
    for (int made = 1; made < 5; ++made) EXPECT_EQ(choice_at({}, made, all_idle), CutChoice{});
  }
}

TEST(FirstCutInside, IsNeverTheLastRound) {
  for (int every = 0; every <= 6; ++every) {
    CheckpointPolicy policy;
    policy.every_rounds = every;
    for (int rounds = 1; rounds <= 6; ++rounds) {
      const auto round = first_cut_inside(policy, rounds);
      const bool expected = every > 0 && every < rounds;
      EXPECT_EQ(round, expected ? std::optional(every - 1) : std::nullopt);
    }
  }
}

}  // namespace
}  // namespace everstep::trainer
