#include "trainer/torch/gelu.h"

#include <cstdint>

#include "trainer/kernels/clones.h"
#include "trainer/kernels/gelu.h"
#include "trainer/torch/cpu_ops.h"
#include "trainer/torch/ops.h"

namespace everstep::trainer {
namespace {

using kernels::Bf16;

template <typename T>
EVERSTEP_HOST_DEVICE void forward_all(const T* __restrict input, T* __restrict value, std::int64_t count) {
  const kernels::Gelu<T> gelu{input, value};
  for (std::int64_t i = 0; i < count; ++i) gelu(i);
}

template <typename T>
EVERSTEP_HOST_DEVICE void backward_all(const T* __restrict input, const T* __restrict output_gradient,
                                       T* __restrict value, T* __restrict input_gradient, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    kernels::gelu_backward(input[i], output_gradient[i], value[i], input_gradient[i]);
  }
}

EVERSTEP_CLONES void forward_floats(const float* input, float* value, std::int64_t count) {
  forward_all(input, value, count);
}

EVERSTEP_CLONES void forward_halves(const Bf16* input, Bf16* value, std::int64_t count) {
  forward_all(input, value, count);
}

EVERSTEP_CLONES void backward_floats(const float* input, const float* output_gradient, float* value,
                                     float* input_gradient, std::int64_t count) {
  backward_all(input, output_gradient, value, input_gradient, count);
}

EVERSTEP_CLONES void backward_halves(const Bf16* input, const Bf16* output_gradient, Bf16* value, Bf16* input_gradient,
                                     std::int64_t count) {
  backward_all(input, output_gradient, value, input_gradient, count);
}

const Bf16* halves(const at::Tensor& tensor) { return static_cast<const Bf16*>(tensor.const_data_ptr()); }
Bf16* mutable_halves(const at::Tensor& tensor) { return static_cast<Bf16*>(tensor.mutable_data_ptr()); }

}  // namespace

void cpu::gelu(const Tensor& value, const Tensor& input) {
  if (input.scalar_type() == at::kFloat) {
    forward_floats(input.const_data_ptr<float>(), value.mutable_data_ptr<float>(), input.numel());
  } else {
    forward_halves(halves(input), mutable_halves(value), input.numel());
  }
}

void cpu::gelu_backward(const Tensor& value, const Tensor& input_gradient, const Tensor& input,
                        const Tensor& output_gradient) {
  if (input.scalar_type() == at::kFloat) {
    backward_floats(input.const_data_ptr<float>(), output_gradient.const_data_ptr<float>(),
                    value.mutable_data_ptr<float>(), input_gradient.mutable_data_ptr<float>(), input.numel());
  } else {
    backward_halves(halves(input), halves(output_gradient), mutable_halves(value), mutable_halves(input_gradient),
                    input.numel());
  }
}

at::Tensor tanh_gelu(const at::Tensor& input) {
  at::Tensor value = at::empty_like(input);
  ops::gelu(value, input);
  return value;
}

GeluBackward tanh_gelu_backward(const at::Tensor& input, const at::Tensor& output_gradient) {
  GeluBackward result{at::empty_like(input), at::empty_like(input)};
  ops::gelu_backward(result.value, result.input_gradient, input, output_gradient);
  return result;
}

}  // namespace everstep::trainer
