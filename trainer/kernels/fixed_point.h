#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

inline constexpr double kFixedPointScale = 0x1p48;

// Adding 1.5 · 2^52 pushes the fraction of a double below 2^51 out of its mantissa, rounding half to even, and leaves
// the integer in the low bits: a conversion that every vector unit can do, unlike double to int64.
inline constexpr double kRounder = 0x1.8p52;
// Larger magnitudes do not fit below the rounder. They need none: as floats they are whole multiples of 2^-20.
inline constexpr float kRoundedBelow = 8.0F;

// round-half-even(value · 2^48); for magnitudes below kRoundedBelow. Others give some number, the same each time.
EVERSTEP_HOST_DEVICE std::uint64_t rounded_fixed_point(float value) {
  const double scaled = static_cast<double>(value) * kFixedPointScale;
  return bits_as<std::uint64_t>(scaled + kRounder) - bits_as<std::uint64_t>(kRounder);
}

// The same for magnitudes from kRoundedBelow on, up to what 64 bits hold.
EVERSTEP_HOST_DEVICE std::uint64_t whole_fixed_point(float value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<double>(value) * kFixedPointScale));
}

// What a value adds to its sum: nothing if it is not finite or not below the limit.
EVERSTEP_HOST_DEVICE std::uint64_t fixed_point_addend(float value, std::uint32_t limit_bits) {
  const std::uint32_t magnitude = magnitude_bits(value);
  if (magnitude >= limit_bits) return 0;
  return magnitude < magnitude_bits(kRoundedBelow) ? rounded_fixed_point(value) : whole_fixed_point(value);
}

EVERSTEP_HOST_DEVICE std::int64_t wrapping_sum(std::int64_t sum, std::uint64_t addend) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + addend);
}

// static_cast<double>, for which vector units have no instruction: both halves as mantissas, exact but for the last
// addition, which rounds.
EVERSTEP_HOST_DEVICE double nearest_double(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  const std::uint64_t high = (bits >> 32) ^ 0x80000000U;  // 2^31 more than it is
  const auto shifted_high = bits_as<double>(high | bits_as<std::uint64_t>(0x1p84));
  const auto shifted_low = bits_as<double>((bits & 0xFFFFFFFFU) | bits_as<std::uint64_t>(0x1p52));
  return (shifted_high - (0x1p84 + 0x1p63 + 0x1p52)) + shifted_low;
}

// The nearest float.
EVERSTEP_HOST_DEVICE float from_fixed_point(std::int64_t sum) {
  return static_cast<float>(nearest_double(sum) * (1.0 / kFixedPointScale));
}

// Returns whether the value could not be added.
struct AddFixedPoint {
  std::int64_t* sums;
  const float* values;
  std::uint32_t limit_bits;

  EVERSTEP_HOST_DEVICE bool operator()(std::int64_t i) const {
    sums[i] = wrapping_sum(sums[i], fixed_point_addend(values[i], limit_bits));
    return magnitude_bits(values[i]) >= limit_bits;
  }
};

// Row i of `rows` to row index[i] of the sums, each with its own limit; no index twice.
struct AddFixedPointRows {
  std::int64_t* sums;
  const std::int64_t* index;
  const float* rows;
  const float* limits;
  std::int64_t width;

  // The columns first, first + stride, … of a row.
  EVERSTEP_HOST_DEVICE bool operator()(std::int64_t row, std::int64_t first, std::int64_t stride) const {
    const AddFixedPoint add{sums + index[row] * width, rows + row * width, magnitude_bits(limits[row])};
    bool any = false;
    for (std::int64_t i = first; i < width; i += stride) any = add(i) || any;
    return any;
  }
};

}  // namespace everstep::trainer::kernels
