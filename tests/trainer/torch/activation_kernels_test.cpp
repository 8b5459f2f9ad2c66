// GELU, dropout and the gradient of cross entropy as a GPU's threads compute them, against the CPU's vector code.
#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/dropout.h"
#include "trainer/kernels/gelu.h"
#include "trainer/torch/ops.h"

namespace everstep::trainer::kernels {
namespace {

template <typename T>
constexpr at::ScalarType kType = at::kFloat;
template <>
constexpr at::ScalarType kType<Bf16> = at::kBFloat16;

template <typename T>
at::Tensor edge_tensor(std::int64_t size, std::uint64_t stream) {
  return at::tensor(edge_floats(size, stream), at::kFloat).to(kType<T>);
}

template <typename T>
const T* data(const at::Tensor& tensor) {
  return static_cast<const T*>(tensor.const_data_ptr());
}

template <typename T>
T* mutable_data(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

bool same_tensors(const at::Tensor& left, const at::Tensor& right) {
  const auto floats = [](const at::Tensor& tensor) {
    const at::Tensor wide = tensor.to(at::kFloat);
    return std::vector<float>(wide.const_data_ptr<float>(), wide.const_data_ptr<float>() + wide.numel());
  };
  return left.scalar_type() == right.scalar_type() && same(floats(left), floats(right));
}

template <typename T>
class ActivationKernels : public testing::Test {};
using Types = testing::Types<float, Bf16>;
TYPED_TEST_SUITE(ActivationKernels, Types);

TYPED_TEST(ActivationKernels, ComputeGeluAsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    const at::Tensor input = edge_tensor<TypeParam>(size, 1);
    const at::Tensor output_gradient = edge_tensor<TypeParam>(size, 2);
    const at::Tensor by_loop = at::empty_like(input);
    const at::Tensor by_kernel = at::empty_like(input);
    ops::gelu(by_loop, input);
    walk_grid(blocks_for(size), size, Gelu<TypeParam>{data<TypeParam>(input), mutable_data<TypeParam>(by_kernel)});
    EXPECT_TRUE(same_tensors(by_loop, by_kernel)) << size;

    const at::Tensor value = at::empty_like(input);
    const at::Tensor gradient_by_loop = at::empty_like(input);
    const at::Tensor gradient_by_kernel = at::empty_like(input);
    ops::gelu_backward(value, gradient_by_loop, input, output_gradient);
    EXPECT_TRUE(same_tensors(value, by_loop)) << size;
    walk_grid(blocks_for(size), size,
              GeluBackward<TypeParam>{data<TypeParam>(input), data<TypeParam>(output_gradient),
                                      mutable_data<TypeParam>(by_kernel), mutable_data<TypeParam>(gradient_by_kernel)});
    EXPECT_TRUE(same_tensors(by_kernel, by_loop)) << size;
    EXPECT_TRUE(same_tensors(gradient_by_kernel, gradient_by_loop)) << size;
  }
}

TYPED_TEST(ActivationKernels, DropAsTheLoopDoes) {
  for (const std::int64_t size : kSizes) {
    for (const std::uint32_t dropped : {1U, 6554U, 65535U}) {
      const at::Tensor values = edge_tensor<TypeParam>(size, 3);
      const at::Tensor by_loop = at::empty_like(values);
      const at::Tensor by_kernel = at::empty_like(values);
      const std::uint64_t seed = 0x9876543210ABCDEF;
      const std::uint64_t stream = 0xF123456789ABCDEF;
      ops::dropout(by_loop, values, seed, stream, dropped);
      const Dropout<TypeParam> drop{
          seed, stream, dropped, dropout_scale(dropped), data<TypeParam>(values), mutable_data<TypeParam>(by_kernel),
          size};
      for (const std::int64_t blocks : block_counts(drop.calls())) {
        walk_grid(blocks, drop.calls(), drop);
        EXPECT_TRUE(same_tensors(by_loop, by_kernel)) << size << " with " << dropped;
        by_kernel.zero_();
      }
    }
  }
}

TEST(EntropyKernels, MakeGradientsAsTheLoopDoes) {
  for (const std::int64_t classes : {1, 2, 7, 8, 9, 255, 257, 1003}) {
    for (const bool edges : {false, true}) {
      const std::int64_t rows = 11;
      const std::int64_t size = rows * classes;
      const at::Tensor logs = at::tensor(edges ? edge_floats(size, 4) : random_floats(size, 4, -8, 7));
      const at::Tensor log_probabilities = logs.view({rows, classes});
      at::Tensor labels = at::arange(rows, at::kLong).mul(37).remainder(classes);
      labels.slice(0, 2, rows, 4).fill_(kNoLabel);
      const at::Tensor by_loop = at::empty_like(log_probabilities);
      ops::cross_entropy_backward(by_loop, log_probabilities, labels, 0.125);
      const at::Tensor by_kernel = at::empty_like(log_probabilities);
      const float scale = entropy_scale(0.125, count_labels(data<std::int64_t>(labels), rows, 0, 1));
      for (const std::int64_t blocks : block_counts(rows, 1)) {
        walk_rows(blocks, rows,
                  EntropyGradient{data<float>(log_probabilities), data<std::int64_t>(labels),
                                  mutable_data<float>(by_kernel), classes, scale});
        EXPECT_TRUE(same_tensors(by_loop, by_kernel)) << classes;
        by_kernel.zero_();
      }
    }
  }
}

}  // namespace
}  // namespace everstep::trainer::kernels
