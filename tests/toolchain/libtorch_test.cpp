#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <gtest/gtest.h>
#include <torch/csrc/api/include/torch/version.h>
#include <torch/csrc/autograd/variable.h>

namespace {

TEST(LibTorch, IsThePinnedVersion) { EXPECT_STREQ(TORCH_VERSION, EVERSTEP_LIBTORCH_VERSION); }

// d/dx sum(x³) = 3x²: small integers, so the floats are exact.
TEST(LibTorch, ComputesAKnownGradientOnOneThread) {
  at::set_num_threads(1);
  at::Tensor x = at::arange(1, 5, at::kFloat).set_requires_grad(true);
  (x * x * x).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::tensor({3.0F, 12.0F, 27.0F, 48.0F})));
  EXPECT_EQ(at::get_num_threads(), 1);
}

}  // namespace
