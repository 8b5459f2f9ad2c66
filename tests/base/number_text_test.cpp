#include "base/number_text.h"

#include <gtest/gtest.h>

namespace everstep {
namespace {

TEST(NumberText, WritesNoMoreThanNeeded) {
  EXPECT_EQ(number_text(2.5, 2), "2.5");
  EXPECT_EQ(number_text(2, 2), "2");
  EXPECT_EQ(number_text(100, 0), "100");
  EXPECT_EQ(number_text(-0.001, 2), "0");
  EXPECT_EQ(number_text(1e20, 1), "100000000000000000000");
}

TEST(FixedText, RoundsToTheDigitsAskedFor) {
  EXPECT_EQ(fixed_text(0.8207, 3), "0.821");
  EXPECT_EQ(fixed_text(1, 3), "1.000");
  EXPECT_EQ(fixed_text(2, 0), "2");
  EXPECT_EQ(fixed_text(-1.25, 1), "-1.2");
  EXPECT_EQ(fixed_text(1e308, 2).size(), 312U);
}

}  // namespace
}  // namespace everstep
