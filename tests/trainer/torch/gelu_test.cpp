#include "trainer/torch/gelu.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(TanhGelu, AgreesWithLibTorchOverTheWholeRange) {
  const at::Tensor input = at::cat({at::linspace(-12, 12, 10'007), at::tensor({-1e30F, -100.0F, 0.0F, 100.0F, 1e30F})});
  const at::Tensor gradient = at::linspace(-1, 1, input.numel());
  const GeluBackward backward = tanh_gelu_backward(input, gradient);
  EXPECT_TRUE(at::equal(backward.value, tanh_gelu(input)));
  const at::Tensor expected = at::gelu(input.to(at::kDouble), "tanh");
  EXPECT_TRUE(at::allclose(backward.value.to(at::kDouble), expected, 1e-6, 1e-6));
  const at::Tensor slope = at::gelu_backward(gradient.to(at::kDouble), input.to(at::kDouble), "tanh");
  EXPECT_TRUE(at::allclose(backward.input_gradient.narrow(0, 0, 10'007).to(at::kDouble), slope.narrow(0, 0, 10'007),
                           1e-5, 1e-6));
}

TEST(TanhGelu, HandsANumberThatIsNoneOn) {
  const at::Tensor input = at::full({20}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(tanh_gelu(input).isnan().all().item<bool>());
  EXPECT_TRUE(tanh_gelu_backward(input, at::ones({20})).input_gradient.isnan().all().item<bool>());
}

}  // namespace
}  // namespace everstep::trainer
