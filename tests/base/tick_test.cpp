#include "base/tick.h"

#include <limits>
#include <type_traits>

#include <gtest/gtest.h>

namespace everstep {
namespace {

TEST(Tick, IsASignedIntegerThatHoldsCenturiesOfNanoseconds) {
  static_assert(std::is_integral_v<Tick> && std::is_signed_v<Tick>);
  EXPECT_GT(std::numeric_limits<Tick>::max() / kTicksPerSecond / (3600 * 24 * 365), 200);
}

TEST(Tick, ReadsInSeconds) {
  static_assert(to_seconds(kTicksPerSecond) == 1.0);
  EXPECT_EQ(to_seconds(0), 0.0);
  EXPECT_EQ(to_seconds(1'500'000'000), 1.5);
  EXPECT_EQ(to_seconds(-250'000'000), -0.25);
}

TEST(Tick, RoundsSecondsAndStopsBeforeSumsOverflow) {
  EXPECT_EQ(ticks_of(1.5e-9), 2);
  EXPECT_EQ(ticks_of(2.5), 2'500'000'000);
  EXPECT_EQ(ticks_of(1e300), Tick{1} << 52);
}

}  // namespace
}  // namespace everstep
