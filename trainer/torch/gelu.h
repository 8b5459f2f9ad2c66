#pragma once

#include <ATen/ATen.h>

namespace everstep::trainer {

// GPT-2's GELU, x · (1 + tanh(√(2/π) (x + 0.044715 x³))) / 2, with one exponential and one division per element. The
// same bits on every machine. Unlike LibTorch's its backward gives the value as well, so that a block need not keep it:
// a quarter of what it would keep otherwise.
at::Tensor tanh_gelu(const at::Tensor& input);

struct GeluBackward {
  at::Tensor value;  // tanh_gelu(input) once more, nearly for nothing, so that nobody has to keep it
  at::Tensor input_gradient;
};

GeluBackward tanh_gelu_backward(const at::Tensor& input, const at::Tensor& output_gradient);

}  // namespace everstep::trainer
