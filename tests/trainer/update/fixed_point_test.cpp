#include "trainer/update/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace everstep::trainer {
namespace {

constexpr float kLimit = fixed_point_limit(1);

// Of all sizes that gradients have, both signs; more than one vector's worth and not a multiple of it.
std::vector<float> many_values() {
  const RandomStream random{5, 6};
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 1003; ++i) {
    const double magnitude = std::exp2(static_cast<double>(random.below(2 * i, 70)) - 57);
    values.push_back(static_cast<float>(magnitude * (2 * random.uniform(2 * i + 1) - 1)));
  }
  return values;
}

TEST(FixedPoint, RoundsToTheNearestAndHalvesToEven) {
  std::vector<float> values = many_values();
  for (const double halves : {0.5, 1.5, 2.5, -0.5, -1.5, -2.5}) {
    values.push_back(static_cast<float>(halves / kFixedPointScale));
  }
  std::vector<std::int64_t> sums(values.size(), 10);
  ASSERT_TRUE(add_fixed_point(sums, values, kLimit));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(sums[i], 10 + std::llrint(static_cast<double>(values[i]) * kFixedPointScale)) << values[i];
  }
}

TEST(FixedPoint, SumsToTheSameBitsInEveryOrder) {
  std::vector<float> values = many_values();
  const auto sum_of = [](const std::vector<float>& addends) {
    std::vector<std::int64_t> sum(1);
    for (const float& addend : addends) EXPECT_TRUE(add_fixed_point(sum, {&addend, 1}, kLimit));
    return sum[0];
  };
  const std::int64_t sum = sum_of(values);
  std::reverse(values.begin(), values.end());
  EXPECT_EQ(sum_of(values), sum);
  std::sort(values.begin(), values.end());
  EXPECT_EQ(sum_of(values), sum);
}

TEST(FixedPoint, RefusesWhatItCannotHold) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float bad[] = {kLimit, -kLimit, 1e30F, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (const float value : bad) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{500}, std::size_t{1002}}) {
      std::vector<float> values = many_values();
      values[place] = value;
      std::vector<std::int64_t> sums(values.size());
      EXPECT_FALSE(add_fixed_point(sums, values, kLimit)) << value << " at " << place;
    }
  }
}

TEST(FixedPoint, HoldsTheLargestValueExactly) {
  const float largest = std::nextafter(kLimit, 0.0F);
  for (const float value : {largest, -largest, 0.0F, -0.0F}) {
    std::vector<std::int64_t> sums(1);
    ASSERT_TRUE(add_fixed_point(sums, {&value, 1}, kLimit));
    EXPECT_EQ(from_fixed_point(sums[0]), value);
  }
}

// Found by users: a gradient of 8 or more was called not finite, and its minibatch left out.
TEST(FixedPoint, TakesLargeGradientsAmongSmallOnes) {
  for (const float large : {8.0F, -8.0F, 9.125F, -1234.5F, 15'999.0F}) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{501}, std::size_t{1002}}) {
      std::vector<float> values = many_values();
      values[place] = large;
      std::vector<std::int64_t> sums(values.size(), -3);
      ASSERT_TRUE(add_fixed_point(sums, values, kLimit)) << large;
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_EQ(sums[i], -3 + std::llrint(static_cast<double>(values[i]) * kFixedPointScale)) << values[i];
      }
    }
  }
}

// Twice, because a tied parameter's two sums are added.
TEST(FixedPoint, HoldsAsManyAddendsAsTheLimitIsFor) {
  for (const std::int64_t addends : {1, 3, 16, 2047, 100'000}) {
    const double largest = std::nextafter(fixed_point_limit(addends), 0.0F);
    EXPECT_LT(2 * static_cast<double>(addends) * (largest * kFixedPointScale + 1), 0x1p63) << addends;
  }
}

TEST(FixedPoint, ComesBackWithinHalfAUnit) {
  for (const float value : many_values()) {
    std::vector<std::int64_t> sums(1);
    ASSERT_TRUE(add_fixed_point(sums, {&value, 1}, kLimit));
    EXPECT_NEAR(from_fixed_point(sums[0]), value, 0.5 / kFixedPointScale + std::abs(value) * 0x1p-24);
  }
}

}  // namespace
}  // namespace everstep::trainer
