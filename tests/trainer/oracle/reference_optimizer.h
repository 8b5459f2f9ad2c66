#pragma once

#include <cstdint>
#include <vector>

#include "trainer/train_loop.h"

// What happens to a gradient on its way into the weights, in plain scalar code. Nothing here is shared with the
// executor: same numbers, other program.
namespace everstep::trainer {

// A parameter and all that training keeps about it.
struct ReferenceParameter {
  ParameterSpec spec;
  int block = 0;
  int index = 0;  // inside the block
  std::vector<float> value;
  std::vector<float> first_moment;
  std::vector<float> second_moment;
  std::vector<std::int64_t> gradient;  // summed over the window so far, in units of 2^-48
};

// sum += round(value · 2^48), half to even. False if the value is not finite or not below 8: too large for the sum.
[[nodiscard]] bool add_to_fixed_point(std::int64_t& sum, float value);

float gradient_at(const ReferenceParameter& parameter, std::size_t element);

// The embedding and the head's copy of it are one parameter: both get the sum of both gradients.
void sum_tied_gradients(std::vector<ReferenceParameter>& parameters);

// Over all parameters in the model's order, the tied one counted once. Each contributes the sum of its squares, made of
// eight partial sums (element i belongs to sum i mod 8).
double global_gradient_norm(const std::vector<ReferenceParameter>& parameters);

// One AdamW step on everything. `step` counts from 1.
void adamw_step(std::vector<ReferenceParameter>& parameters, const AdamOptions& options, double learning_rate,
                double gradient_norm, std::int64_t step);

void forget_gradients(std::vector<ReferenceParameter>& parameters);

// By consumed samples: linear warm-up, then decay.
double reference_learning_rate(const LearningRate& schedule, std::int64_t samples);

}  // namespace everstep::trainer
