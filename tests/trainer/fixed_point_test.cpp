#include "trainer/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace everstep::trainer {
namespace {

// Of all sizes that gradients have, both signs; more than one vector's worth and not a multiple of it.
std::vector<float> many_values() {
  const RandomStream random{5, 6};
  std::vector<float> values;
  for (std::uint64_t i = 0; i < 1003; ++i) {
    const double magnitude = std::exp2(static_cast<double>(random.below(2 * i, 60)) - 57);
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
  ASSERT_TRUE(add_fixed_point(sums, values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(sums[i], 10 + std::llrint(static_cast<double>(values[i]) * kFixedPointScale)) << values[i];
  }
}

TEST(FixedPoint, SumsToTheSameBitsInEveryOrder) {
  std::vector<float> values = many_values();
  const auto sum_of = [](const std::vector<float>& addends) {
    std::vector<std::int64_t> sum(1);
    for (const float& addend : addends) EXPECT_TRUE(add_fixed_point(sum, {&addend, 1}));
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
  const float bad[] = {8.0F, -8.0F, 1e30F, kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  for (const float value : bad) {
    for (const std::size_t place : {std::size_t{0}, std::size_t{500}, std::size_t{1002}}) {
      std::vector<float> values = many_values();
      values[place] = value;
      std::vector<std::int64_t> sums(values.size());
      EXPECT_FALSE(add_fixed_point(sums, values)) << value << " at " << place;
    }
  }
}

TEST(FixedPoint, HoldsTheLargestValueExactly) {
  const float largest = std::nextafter(kFixedPointLimit, 0.0F);
  for (const float value : {largest, -largest, 0.0F, -0.0F}) {
    std::vector<std::int64_t> sums(1);
    ASSERT_TRUE(add_fixed_point(sums, {&value, 1}));
    EXPECT_EQ(from_fixed_point(sums[0]), value);
  }
}

TEST(FixedPoint, ComesBackWithinHalfAUnit) {
  for (const float value : many_values()) {
    std::vector<std::int64_t> sums(1);
    ASSERT_TRUE(add_fixed_point(sums, {&value, 1}));
    EXPECT_NEAR(from_fixed_point(sums[0]), value, 0.5 / kFixedPointScale + std::abs(value) * 0x1p-24);
  }
}

}  // namespace
}  // namespace everstep::trainer
