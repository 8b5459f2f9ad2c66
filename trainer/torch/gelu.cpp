#include "trainer/torch/gelu.h"

#include <algorithm>
#include <bit>
#include <cstdint>

// AVX2 without FMA, as everywhere here: nothing can be contracted, so that the clones agree in every bit.
#define EVERSTEP_CLONES __attribute__((target_clones("avx2", "default")))
#define EVERSTEP_INLINE inline __attribute__((always_inline))

namespace everstep::trainer {
namespace {

// e^x to two units in the last place, after Cephes: x = n ln 2 + r, a polynomial in r, and n added to the exponent.
// Written so that a compiler makes vector code of it.
EVERSTEP_INLINE float exponential(float x) {
  constexpr float kRounder = 0x1.8p23F;  // leaves the nearest integer in the low bits
  const float bounded = std::min(std::max(x, -87.0F), 88.0F);
  const float shifted = bounded * 1.44269504F + kRounder;
  const float n = shifted - kRounder;
  const float r = (bounded - n * 0.693359375F) + n * 2.12194440e-4F;
  float polynomial = 1.9875691500e-4F;
  polynomial = polynomial * r + 1.3981999507e-3F;
  polynomial = polynomial * r + 8.3334519073e-3F;
  polynomial = polynomial * r + 4.1665795894e-2F;
  polynomial = polynomial * r + 1.6666665459e-1F;
  polynomial = polynomial * r + 5.0000001201e-1F;
  const float power = polynomial * (r * r) + r + 1.0F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) + (std::bit_cast<std::uint32_t>(shifted) << 23));
}

// (1 + tanh(z)) / 2 = 1 / (1 + e^(-2z)).
constexpr float kTwiceRoot = 1.5957691216F;  // 2 √(2/π)
constexpr float kCubic = 0.044715F;

EVERSTEP_INLINE float share(float x) { return 1.0F / (1.0F + exponential(-kTwiceRoot * (x + kCubic * x * x * x))); }

template <typename T>
EVERSTEP_INLINE void forward_all(const T* input, T* value, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(input[i]);
    value[i] = static_cast<T>(x * share(x));
  }
}

template <typename T>
EVERSTEP_INLINE void backward_all(const T* __restrict input, const T* __restrict output_gradient, T* __restrict value,
                                  T* __restrict input_gradient, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto x = static_cast<float>(input[i]);
    const float s = share(x);
    const float slope = s + x * s * (1.0F - s) * kTwiceRoot * (1.0F + 3.0F * kCubic * x * x);
    value[i] = static_cast<T>(x * s);
    input_gradient[i] = static_cast<T>(static_cast<float>(output_gradient[i]) * slope);
  }
}

EVERSTEP_CLONES void forward_floats(const float* input, float* value, std::int64_t count) {
  forward_all(input, value, count);
}

EVERSTEP_CLONES void backward_floats(const float* input, const float* output_gradient, float* value,
                                     float* input_gradient, std::int64_t count) {
  backward_all(input, output_gradient, value, input_gradient, count);
}

}  // namespace

at::Tensor tanh_gelu(const at::Tensor& input) {
  at::Tensor value = at::empty_like(input);
  if (input.scalar_type() == at::kFloat) {
    forward_floats(input.const_data_ptr<float>(), value.mutable_data_ptr<float>(), input.numel());
  } else {
    using Half = c10::BFloat16;
    forward_all(input.const_data_ptr<Half>(), value.mutable_data_ptr<Half>(), input.numel());
  }
  return value;
}

GeluBackward tanh_gelu_backward(const at::Tensor& input, const at::Tensor& output_gradient) {
  GeluBackward result{at::empty_like(input), at::empty_like(input)};
  if (input.scalar_type() == at::kFloat) {
    backward_floats(input.const_data_ptr<float>(), output_gradient.const_data_ptr<float>(),
                    result.value.mutable_data_ptr<float>(), result.input_gradient.mutable_data_ptr<float>(),
                    input.numel());
  } else {
    using Half = c10::BFloat16;
    backward_all(input.const_data_ptr<Half>(), output_gradient.const_data_ptr<Half>(),
                 result.value.mutable_data_ptr<Half>(), result.input_gradient.mutable_data_ptr<Half>(), input.numel());
  }
  return result;
}

}  // namespace everstep::trainer
