#pragma once

#include <cstdint>
#include <span>

namespace everstep::trainer {

// Order-free sums: a gradient becomes round(g · 2^48) in 64 bits, so integer addition makes every order of minibatches
// and replicas give the same bits. One addend must be below 2^3 in magnitude; a window's worth of them fits, and the
// sum of two such sums (tied parameters).
inline constexpr double kFixedPointScale = 0x1p48;
inline constexpr float kFixedPointLimit = 8.0F;
inline constexpr int kFixedPointAddends = 2047;

// sums[i] += round-half-even(values[i] · 2^48). Returns false, and leaves `sums` undefined, if a value is not finite or
// not below the limit.
bool add_fixed_point(std::span<std::int64_t> sums, std::span<const float> values);

// The nearest float.
inline float from_fixed_point(std::int64_t sum) {
  return static_cast<float>(static_cast<double>(sum) * (1.0 / kFixedPointScale));
}

}  // namespace everstep::trainer
