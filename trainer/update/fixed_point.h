#pragma once

#include <cstdint>
#include <span>

#include "trainer/kernels/fixed_point.h"

namespace everstep::trainer {

// Order-free sums: a gradient becomes round(g · 2^48) in 64 bits, so integer addition makes every order of minibatches
// and replicas give the same bits. What goes into one sum must add up to less than the range in magnitude; then the sum
// of two such sums (tied parameters) fits as well.
using kernels::from_fixed_point;
using kernels::kFixedPointScale;
inline constexpr double kFixedPointRange = 16'000;

// What each of so many addends of one sum must be below, whatever the others are: the same under every plan.
constexpr float fixed_point_limit(std::int64_t addends) {
  return static_cast<float>(kFixedPointRange / static_cast<double>(addends));
}

// sums[i] += round-half-even(values[i] · 2^48). Returns false if a value is not finite or not below the limit in
// magnitude; such a value adds nothing, so the sums are of no use then.
bool add_fixed_point(std::span<std::int64_t> sums, std::span<const float> values, float limit);

}  // namespace everstep::trainer
