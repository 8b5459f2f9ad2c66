#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trainer/model/model_config.h"
#include "trainer/update/learning_rate.h"
#include "trainer/update/optimizer.h"

// What happens to a gradient on its way into the weights, in plain scalar code. Nothing here is shared with the
// executor: same numbers, other program.
namespace everstep::trainer {

// A parameter and all that training keeps about it.
struct ReferenceParameter {
  ParameterSpec spec;
  std::span<float> value;  // under bf16 the master
  std::span<float> first_moment;
  std::span<float> second_moment;
  std::vector<float> gradient;  // summed over the window
};

// The sums of one parameter's gradient as floats. The embedding and the head's copy of it are one parameter: both get
// the sum of both gradients.
std::vector<float> gradient_of(std::span<const std::int64_t> sums, std::span<const std::int64_t> tied_sums);
std::vector<float> gradient_of(std::span<const float> sums, std::span<const float> tied_sums);

// Over all parameters in the model's order, the tied one counted once. Each contributes the sum of its squares: of
// chunks of 4096 elements from left to right, each made of eight partial sums (element i belongs to sum i mod 8).
double global_gradient_norm(const std::vector<ReferenceParameter>& parameters);

// One AdamW step on everything. `step` counts from 1.
void adamw_step(std::vector<ReferenceParameter>& parameters, const AdamOptions& options, double learning_rate,
                double gradient_norm, std::int64_t step);

// What one AdamW step would make of a parameter's values, with its gradient multiplied by `scale`; a value for which
// that is no number stays as it is. Changes nothing.
std::vector<float> adamw_trial(const ReferenceParameter& parameter, const AdamOptions& options, double learning_rate,
                               double scale, std::int64_t step);

// What a step multiplies a gradient of that norm by.
double reference_clip_scale(const AdamOptions& options, double gradient_norm);

// By consumed samples: linear warm-up, then decay.
double reference_learning_rate(const LearningRate& schedule, std::int64_t samples);

// The nearest bf16, half to even, as its bits.
std::uint16_t to_bf16(float value);

}  // namespace everstep::trainer
