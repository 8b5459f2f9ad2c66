#pragma once

#include "trainer/kernels/bf16.h"

namespace everstep::trainer::kernels {

// `chosen` if the condition holds, else `other`. By bits and not by a branch: a compiler follows a branch to what its
// constants lead to, computes that for every element, and drops it again. After e^88 those are numbers too small for
// normal floats, each of which takes a CPU more than a hundred cycles.
EVERSTEP_HOST_DEVICE float chosen_if(bool condition, float chosen, float other) {
  const std::uint32_t mask = 0U - static_cast<std::uint32_t>(condition);
  return bits_as<float>((bits_as<std::uint32_t>(chosen) & mask) | (bits_as<std::uint32_t>(other) & ~mask));
}

// e^x to two units in the last place, after Cephes: x = n ln 2 + r, a polynomial in r, and n added to the exponent.
// Written so that a compiler makes vector code of it.
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

inline constexpr float kTwiceRoot = 1.5957691216F;  // 2 √(2/π)
inline constexpr float kCubic = 0.044715F;

// (1 + tanh(z)) / 2 = 1 / (1 + e^(-2z)), the share of x that GELU lets through.
EVERSTEP_HOST_DEVICE float gelu_share(float x) {
  return 1.0F / (1.0F + exponential(-kTwiceRoot * (x + kCubic * x * x * x)));
}

// T is float or Bf16 here and below.
template <typename T>
struct Gelu {
  const T* input;
  T* value;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    const float x = to_float(input[i]);
    store(x * gelu_share(x), value[i]);
  }
};

template <typename T>
EVERSTEP_HOST_DEVICE void gelu_backward(T input, T output_gradient, T& value, T& input_gradient) {
  const float x = to_float(input);
  const float s = gelu_share(x);
  const float slope = s + x * s * (1.0F - s) * kTwiceRoot * (1.0F + 3.0F * kCubic * x * x);
  store(x * s, value);
  store(to_float(output_gradient) * slope, input_gradient);
}

template <typename T>
struct GeluBackward {
  const T* input;
  const T* output_gradient;
  T* value;
  T* input_gradient;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    gelu_backward(input[i], output_gradient[i], value[i], input_gradient[i]);
  }
};

}  // namespace everstep::trainer::kernels
