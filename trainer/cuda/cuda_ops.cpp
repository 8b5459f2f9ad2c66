// The kernels of the operators in trainer/torch/ops.h for CUDA, on the current stream of the tensors' GPU. Arguments
// were checked there.
#include <array>
#include <cstdint>
#include <optional>

#include <ATen/ATen.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/library.h>

#include "trainer/cuda/launches.h"
#include "trainer/kernels/ordered_sum.h"

namespace everstep::trainer::cuda {
namespace {

using at::Tensor;
using kernels::Bf16;

template <typename T>
const T* data(const Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <typename T>
T* mutable_data(const Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

bool is_fixed_point(const Tensor& sums) { return sums.scalar_type() == at::kLong; }
bool is_bf16(const Tensor& values) { return values.scalar_type() == at::kBFloat16; }

// Calls with the stream on which whatever made the tensor runs; throws if CUDA refuses what was launched.
template <typename Launch>
void launch_on(const Tensor& tensor, const Launch& launch) {
  const c10::cuda::CUDAGuard guard(tensor.device());
  launch(c10::cuda::getCurrentCUDAStream().stream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

void add_sums_op(const Tensor& sums, const Tensor& addend) {
  launch_on(sums, [&](cudaStream_t stream) {
    if (is_fixed_point(sums)) {
      add_sums(mutable_data<std::uint64_t>(sums), data<std::uint64_t>(addend), sums.numel(), stream);
    } else {
      add_sums(mutable_data<float>(sums), data<float>(addend), sums.numel(), stream);
    }
  });
}

void add_fixed_point_op(const Tensor& sums, const Tensor& values, double limit, const Tensor& overflow) {
  launch_on(sums, [&](cudaStream_t stream) {
    add_fixed_point(mutable_data<std::int64_t>(sums), data<float>(values), sums.numel(), static_cast<float>(limit),
                    mutable_data<std::uint8_t>(overflow), stream);
  });
}

void add_fixed_point_rows_op(const Tensor& sums, const Tensor& index, const Tensor& rows, const Tensor& limits,
                             const Tensor& overflow) {
  const FixedPointRows all{mutable_data<std::int64_t>(sums),
                           data<std::int64_t>(index),
                           data<float>(rows),
                           data<float>(limits),
                           index.numel(),
                           rows.size(1)};
  launch_on(sums,
            [&](cudaStream_t stream) { add_fixed_point_rows(all, mutable_data<std::uint8_t>(overflow), stream); });
}

void adamw_op(const Tensor& master, const Tensor& first, const Tensor& second, const Tensor& gradient,
              at::ArrayRef<double> constants) {
  const kernels::AdamWConstants narrow = kernels::adamw_constants(constants.data());
  const auto state = [&]<typename Sum>(Sum* sums) {
    return AdamWState<Sum>{mutable_data<float>(master), mutable_data<float>(first), mutable_data<float>(second), sums,
                           gradient.numel()};
  };
  launch_on(master, [&](cudaStream_t stream) {
    if (is_fixed_point(gradient)) {
      adamw(narrow, state(mutable_data<std::int64_t>(gradient)), stream);
    } else {
      adamw(narrow, state(mutable_data<float>(gradient)), stream);
    }
  });
}

template <typename Sum, typename Weight>
void try_step(const Tensor& weights, const std::array<Tensor, 3>& state, const Tensor& gradient,
              const kernels::AdamWConstants& constants, cudaStream_t stream) {
  adamw_trial(constants,
              AdamWTrialState<Sum, Weight>{data<float>(state[0]), data<float>(state[1]), data<float>(state[2]),
                                           data<Sum>(gradient), mutable_data<Weight>(weights), gradient.numel()},
              stream);
}

void adamw_trial_op(const Tensor& weights, const Tensor& master, const Tensor& first, const Tensor& second,
                    const Tensor& gradient, at::ArrayRef<double> constants) {
  const kernels::AdamWConstants narrow = kernels::adamw_constants(constants.data());
  const std::array<Tensor, 3> state{master, first, second};
  const bool is_float = weights.scalar_type() == at::kFloat;
  launch_on(weights, [&](cudaStream_t stream) {
    if (is_fixed_point(gradient)) {
      is_float ? try_step<std::int64_t, float>(weights, state, gradient, narrow, stream)
               : try_step<std::int64_t, kernels::Bf16>(weights, state, gradient, narrow, stream);
    } else {
      is_float ? try_step<float, float>(weights, state, gradient, narrow, stream)
               : try_step<float, kernels::Bf16>(weights, state, gradient, narrow, stream);
    }
  });
}

void round_to_bf16_op(const Tensor& weights, const Tensor& master) {
  launch_on(weights, [&](cudaStream_t stream) {
    round_to_bf16(mutable_data<std::uint16_t>(weights), data<float>(master), master.numel(), stream);
  });
}

// The one operator that needs scratch: LibTorch's allocator keeps it for the stream, so that nobody waits.
void sum_of_squares_op(const Tensor& sum, const Tensor& gradient) {
  const Tensor scratch = at::empty({kernels::sum_chunks(gradient.numel())}, sum.options());
  launch_on(sum, [&](cudaStream_t stream) {
    auto* const chunks = mutable_data<double>(scratch);
    auto* const target = mutable_data<double>(sum);
    if (is_fixed_point(gradient)) {
      sum_of_squares(target, data<std::int64_t>(gradient), gradient.numel(), chunks, stream);
    } else {
      sum_of_squares(target, data<float>(gradient), gradient.numel(), chunks, stream);
    }
  });
}

void note_not_finite_op(const Tensor& flag, const Tensor& values) {
  launch_on(values, [&](cudaStream_t stream) {
    if (is_bf16(values)) {
      note_not_finite(mutable_data<std::uint8_t>(flag), data<std::uint16_t>(values), values.numel(), stream);
    } else {
      note_not_finite(mutable_data<std::uint8_t>(flag), data<std::uint32_t>(values), values.numel(), stream);
    }
  });
}

void hash_op(const Tensor& result, const Tensor& bytes) {
  const auto* const first = data<std::uint8_t>(bytes);
  TORCH_CHECK(reinterpret_cast<std::uintptr_t>(first) % sizeof(std::uint64_t) == 0, "bytes to hash begin at a word");
  launch_on(bytes, [&](cudaStream_t stream) {
    hash(mutable_data<std::uint64_t>(result), first, static_cast<std::int64_t>(bytes.nbytes()), stream);
  });
}

void swap_op(const Tensor& left, const Tensor& right) {
  launch_on(left, [&](cudaStream_t stream) {
    swap(mutable_data<std::uint8_t>(left), mutable_data<std::uint8_t>(right), static_cast<std::int64_t>(left.nbytes()),
         stream);
  });
}

void multiply_op(const Tensor& result, const Tensor& left, const Tensor& right, const std::optional<Tensor>& bias) {
  Tensor target = result;
  if (bias) {
    at::addmm_out(target, *bias, left, right);
  } else {
    at::mm_out(target, left, right);
  }
}

void add_product_op(const Tensor& sums, const Tensor& left, const Tensor& right) { Tensor(sums).addmm_(left, right); }

void gelu_op(const Tensor& value, const Tensor& input) {
  launch_on(input, [&](cudaStream_t stream) {
    if (is_bf16(input)) {
      gelu(mutable_data<Bf16>(value), data<Bf16>(input), input.numel(), stream);
    } else {
      gelu(mutable_data<float>(value), data<float>(input), input.numel(), stream);
    }
  });
}

template <typename T>
GeluTensors<T> gelu_tensors(const Tensor& value, const Tensor& input_gradient, const Tensor& input,
                            const Tensor& output_gradient) {
  return {mutable_data<T>(value), mutable_data<T>(input_gradient), data<T>(input), data<T>(output_gradient),
          input.numel()};
}

void gelu_backward_op(const Tensor& value, const Tensor& input_gradient, const Tensor& input,
                      const Tensor& output_gradient) {
  launch_on(input, [&](cudaStream_t stream) {
    if (is_bf16(input)) {
      gelu_backward(gelu_tensors<Bf16>(value, input_gradient, input, output_gradient), stream);
    } else {
      gelu_backward(gelu_tensors<float>(value, input_gradient, input, output_gradient), stream);
    }
  });
}

void dropout_op(const Tensor& result, const Tensor& values, std::int64_t seed, std::int64_t number,
                std::int64_t dropped) {
  const auto made = [&]<typename T>(const T* from) {
    const auto limit = static_cast<std::uint32_t>(dropped);
    return kernels::Dropout<T>{static_cast<std::uint64_t>(seed),
                               static_cast<std::uint64_t>(number),
                               limit,
                               kernels::dropout_scale(limit),
                               from,
                               mutable_data<T>(result),
                               values.numel()};
  };
  launch_on(values, [&](cudaStream_t stream) {
    if (is_bf16(values)) {
      dropout(made(data<Bf16>(values)), stream);
    } else {
      dropout(made(data<float>(values)), stream);
    }
  });
}

Logits logits_of(const Tensor& log_probabilities, const Tensor& labels) {
  return {data<std::int64_t>(labels), labels.numel(), log_probabilities.size(1)};
}

void cross_entropy_op(const Tensor& loss, const Tensor& log_probabilities, const Tensor& labels) {
  launch_on(loss, [&](cudaStream_t stream) {
    cross_entropy(mutable_data<float>(loss), data<float>(log_probabilities), logits_of(log_probabilities, labels),
                  stream);
  });
}

void cross_entropy_backward_op(const Tensor& gradient, const Tensor& log_probabilities, const Tensor& labels,
                               double weight) {
  launch_on(gradient, [&](cudaStream_t stream) {
    cross_entropy_backward(mutable_data<float>(gradient), data<float>(log_probabilities),
                           logits_of(log_probabilities, labels), weight, stream);
  });
}

TORCH_LIBRARY_IMPL(everstep, CUDA, library) {
  library.impl("add_sums_", &add_sums_op);
  library.impl("add_fixed_point_", &add_fixed_point_op);
  library.impl("add_fixed_point_rows_", &add_fixed_point_rows_op);
  library.impl("adamw_", &adamw_op);
  library.impl("adamw_trial_", &adamw_trial_op);
  library.impl("round_to_bf16_", &round_to_bf16_op);
  library.impl("sum_of_squares_", &sum_of_squares_op);
  library.impl("note_not_finite_", &note_not_finite_op);
  library.impl("hash_", &hash_op);
  library.impl("swap_", &swap_op);
  library.impl("multiply_", &multiply_op);
  library.impl("add_product_", &add_product_op);
  library.impl("gelu_", &gelu_op);
  library.impl("gelu_backward_", &gelu_backward_op);
  library.impl("dropout_", &dropout_op);
  library.impl("cross_entropy_", &cross_entropy_op);
  library.impl("cross_entropy_backward_", &cross_entropy_backward_op);
}

}  // namespace
}  // namespace everstep::trainer::cuda
