#include "trainer/fixed_point.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "base/check.h"

namespace everstep::trainer {
namespace {

// Adding 1.5 · 2^52 pushes the fraction of a double below 2^51 out of its mantissa, rounding half to even, and leaves
// the integer in the low bits: a conversion that every vector unit can do, unlike double to int64.
constexpr double kRounder = 0x1.8p52;

constexpr std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFFU; }

// Magnitudes order like their bits, with infinity and NaN above all others. AVX2 without FMA: nothing can be
// contracted, so that the clones agree in every bit.
__attribute__((target_clones("avx2", "default"))) std::uint32_t add_all(std::int64_t* sums, const float* values,
                                                                        std::size_t count) {
  std::uint32_t largest = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(values[i]) * kFixedPointScale;
    const std::uint64_t addend =
        std::bit_cast<std::uint64_t>(scaled + kRounder) - std::bit_cast<std::uint64_t>(kRounder);
    sums[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sums[i]) + addend);
    largest = std::max(largest, magnitude_bits(values[i]));
  }
  return largest;
}

}  // namespace

bool add_fixed_point(std::span<std::int64_t> sums, std::span<const float> values) {
  EVERSTEP_CHECK(sums.size() == values.size(), "as many sums as values");
  return add_all(sums.data(), values.data(), values.size()) < magnitude_bits(kFixedPointLimit);
}

}  // namespace everstep::trainer
