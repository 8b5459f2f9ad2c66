#pragma once

#include "trainer/kernels/bf16.h"
#include "trainer/kernels/fixed_point.h"

namespace everstep::trainer::kernels {

// Constants of one step in the precision of the state. Every owner computes them from the same doubles.
struct AdamWConstants {
  float clip_scale;
  float beta1, one_minus_beta1;
  float beta2, one_minus_beta2;
  float keep;  // what weight decay leaves of a weight
  float step_size;
  float root_of_correction2;
  float epsilon;
};

inline constexpr int kAdamWConstants = 9;

// From their doubles, in the order above.
inline AdamWConstants adamw_constants(const double* values) {
  const auto at = [values](int i) { return static_cast<float>(values[i]); };
  return {at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7), at(8)};
}

// A gradient's sum as a float.
EVERSTEP_HOST_DEVICE float gradient_of(float sum) { return sum; }
EVERSTEP_HOST_DEVICE float gradient_of(std::int64_t sum) { return from_fixed_point(sum); }

// To nearest on every device: sqrt.rn on a GPU.
EVERSTEP_HOST_DEVICE float square_root(float value) {
#ifdef __CUDA_ARCH__
  return sqrtf(value);
#else
  return __builtin_sqrtf(value);
#endif
}

// One element's step; leaves its sum zero.
template <typename Sum>
EVERSTEP_HOST_DEVICE void adamw_step(const AdamWConstants& c, Sum& sum, float& first, float& second, float& master) {
  const float gradient = gradient_of(sum) * c.clip_scale;
  const float new_first = c.beta1 * first + c.one_minus_beta1 * gradient;
  const float new_second = c.beta2 * second + c.one_minus_beta2 * (gradient * gradient);
  const float denominator = square_root(new_second) / c.root_of_correction2 + c.epsilon;
  first = new_first;
  second = new_second;
  master = master * c.keep - c.step_size * (new_first / denominator);
  sum = 0;
}

// What that step would make of the weight; the weight itself if that is no number. Changes nothing.
template <typename Sum>
EVERSTEP_HOST_DEVICE float adamw_trial(const AdamWConstants& c, Sum sum, float first, float second, float master) {
  float stepped = master;
  adamw_step(c, sum, first, second, stepped);
  return magnitude_bits(stepped) < 0x7F800000U ? stepped : master;
}

// Sum is float or std::int64_t, Weight float or Bf16.
template <typename Sum, typename Weight>
struct AdamWTrial {
  AdamWConstants constants;
  const float* master;
  const float* first;
  const float* second;
  const Sum* sums;
  Weight* weights;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    store(adamw_trial(constants, sums[i], first[i], second[i], master[i]), weights[i]);
  }
};

// Sum is float or std::int64_t.
template <typename Sum>
struct AdamW {
  AdamWConstants constants;
  float* master;
  float* first;
  float* second;
  Sum* sums;

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t i) const {
    adamw_step(constants, sums[i], first[i], second[i], master[i]);
  }
};

}  // namespace everstep::trainer::kernels
