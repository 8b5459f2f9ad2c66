#include "trainer/recovery/super_rounds.h"

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using Place = SuperRounds::Place;

TEST(SuperRounds, AreNumberedThroughPartialWindows) {
  const SuperRounds rounds({2 * 10 + 6}, 10, 4);  // four minibatches of window 2 are left, then 4 + 4 + 2
  EXPECT_EQ(rounds.place_of(0), (Place{2, 0}));
  EXPECT_EQ(rounds.place_of(1), (Place{3, 0}));
  EXPECT_EQ(rounds.place_of(3), (Place{3, 2}));
  EXPECT_EQ(rounds.place_of(4), (Place{4, 0}));
  EXPECT_EQ(rounds.end_of(0), Position{30});
  EXPECT_EQ(rounds.end_of(1), Position{34});
  EXPECT_EQ(rounds.end_of(3), Position{40});
  EXPECT_TRUE(rounds.ends_window(0));
  EXPECT_FALSE(rounds.ends_window(2));
  EXPECT_TRUE(rounds.ends_window(3));
  EXPECT_EQ(rounds.last_of(2), 0);
  EXPECT_EQ(rounds.last_of(4), 6);
}

TEST(SuperRounds, OfWindowsBeforeTheRunDoNotExist) {
  const SuperRounds rounds({20}, 10, 4);
  EXPECT_EQ(rounds.number_of({1, 0}), -1);
  EXPECT_EQ(rounds.last_of(1), -1);
}

TEST(SuperRounds, HaveOnePlaceEach) {
  for (const int begin : {0, 3, 7, 14}) {
    const SuperRounds rounds({begin}, 7, 3);
    Position last{begin};
    for (std::int64_t number = 0; number < 20; ++number) {
      EXPECT_EQ(rounds.number_of(rounds.place_of(number)), number);
      EXPECT_GT(rounds.end_of(number).value, last.value);
      EXPECT_EQ(rounds.ends_window(number), rounds.end_of(number).value % 7 == 0);
      last = rounds.end_of(number);
    }
  }
}

}  // namespace
}  // namespace everstep::trainer
