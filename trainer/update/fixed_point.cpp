#include "trainer/update/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"

namespace everstep::trainer {
namespace {

// Adding 1.5 · 2^52 pushes the fraction of a double below 2^51 out of its mantissa, rounding half to even, and leaves
// the integer in the low bits: a conversion that every vector unit can do, unlike double to int64.
constexpr double kRounder = 0x1.8p52;
// Larger magnitudes do not fit below the rounder. They need none: as floats they are whole multiples of 2^-20.
constexpr float kRoundedBelow = 8.0F;

constexpr std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU; }

inline std::uint64_t rounded(float value) {
  const double scaled = static_cast<double>(value) * kFixedPointScale;
  return std::bit_cast<std::uint64_t>(scaled + kRounder) - std::bit_cast<std::uint64_t>(kRounder);
}

inline std::int64_t sum_of(std::int64_t sum, std::uint64_t addend) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + addend);
}

// Magnitudes order like their bits, with infinity and NaN above all others. AVX2 without FMA: nothing can be
// contracted, so that the clones agree in every bit.
__attribute__((target_clones("avx2", "default"))) std::uint32_t add_all(std::int64_t* sums, const float* values,
                                                                        std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sums[i] = sum_of(sums[i], rounded(values[i]));
    largest = std::max(largest, magnitude_bits(values[i]));
  }
  return largest;
}

// Rare, so that they cost the others nothing: what add_all made of them is taken back.
void replace_large(std::span<std::int64_t> sums, std::span<const float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (magnitude_bits(values[i]) < magnitude_bits(kRoundedBelow)) continue;
    const auto exact = static_cast<std::int64_t>(static_cast<double>(values[i]) * kFixedPointScale);
    sums[i] = sum_of(sums[i], static_cast<std::uint64_t>(exact) - rounded(values[i]));
  }
}

}  // namespace

bool add_fixed_point(std::span<std::int64_t> sums, std::span<const float> values, float limit) {
  EVERSTEP_CHECK(sums.size() == values.size(), "as many sums as values");
  EVERSTEP_CHECK(limit <= fixed_point_limit(1), "a limit that 64 bits can hold");
  const std::uint32_t largest = add_all(sums.data(), values.data(), values.size());
  if (largest >= magnitude_bits(limit)) return false;
  if (largest >= magnitude_bits(kRoundedBelow)) replace_large(sums, values);
  return true;
}

}  // namespace everstep::trainer
