#pragma once

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/exponential.h"

namespace everstep::trainer::kernels {

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
