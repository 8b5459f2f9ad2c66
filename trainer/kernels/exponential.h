#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

// `chosen` if the condition holds, else `other`. By bits and not by a branch: a compiler follows a branch to what its
// constants lead to, computes that for every element, and drops it again. After e^88 those are numbers too small for
// normal floats, each of which takes a CPU more than a hundred cycles.
EVERSTEP_HOST_DEVICE float chosen_if(bool condition, float chosen, float other) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return bits_as<float>((bits_as<std::uint32_t>(chosen) & mask) | (bits_as<std::uint32_t>(other) & ~mask));
}

// e^x to two units in the last place, after Cephes: x = n ln 2 + r, a polynomial in r, and n added to the exponent.
// x counts as -87 if it is less, and as 88 if it is more; for NaN the result is any number. Written so that a compiler
// makes vector code of it.
EVERSTEP_HOST_DEVICE float exponential(float x) {
  constexpr float kIntegerRounder = 0x1.8p23F;  // leaves the nearest integer in the low bits
  const float raised = chosen_if(x < -87.0F, -87.0F, x);
  const float bounded = chosen_if(88.0F < raised, 88.0F, raised);
  const float shifted = bounded * 1.44269504F + kIntegerRounder;
  const float n = shifted - kIntegerRounder;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float polynomial = 1.9875691500e-4F;
  polynomial = polynomial * r + 1.3981999507e-3F;
  polynomial = polynomial * r + 8.3334519073e-3F;
  polynomial = polynomial * r + 4.1665795894e-2F;
  polynomial = polynomial * r + 1.6666665459e-1F;
  polynomial = polynomial * r + 5.0000001201e-1F;
  const float power = polynomial * (r * r) + r + 1.0F;
  return bits_as<float>(bits_as<std::uint32_t>(power) + (bits_as<std::uint32_t>(shifted) << 23));
}

// The probability that has this logarithm. What is below e^-87 is 0; NaN stays NaN.
EVERSTEP_HOST_DEVICE float probability(float logarithm) {
  constexpr std::uint32_t kInfinityBits = 0x7F800000U;
  const float power = logarithm < -87.0F ? 0.0F : exponential(logarithm);
  return magnitude_bits(logarithm) > kInfinityBits ? logarithm : power;
}

}  // namespace everstep::trainer::kernels
