#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/torch/layers.h"

namespace everstep::trainer {
namespace {

using kernels::random_floats;

at::Tensor random_rows(std::int64_t rows, std::int64_t columns, int seed) {
  return at::tensor(random_floats(rows * columns, seed, -2, 2), at::kFloat).view({rows, columns});
}

struct AttentionCase {
  std::int64_t sequences;
  std::int64_t length;
  std::int64_t heads;
  std::int64_t size;  // of a head
  bool causal;
  bool masked;
};

class EveryAttention : public testing::TestWithParam<AttentionCase> {
 protected:
  // The plain formula in doubles.
  at::Tensor expected(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
    const auto by_head = [&](const at::Tensor& rows) {
      return rows.view({case_.sequences, case_.length, case_.heads, case_.size}).transpose(1, 2);
    };
    at::Tensor scores =
        by_head(query).matmul(by_head(key).transpose(2, 3)) / std::sqrt(static_cast<double>(case_.size));
    if (attention_.mask) scores = scores + attention_.mask->to(at::kDouble);
    if (case_.causal) {
      const at::Tensor later = at::ones({case_.length, case_.length}, at::kBool).triu(1);
      scores = scores.masked_fill(later, -std::numeric_limits<double>::infinity());
    }
    return scores.softmax(-1).matmul(by_head(value)).transpose(1, 2).reshape(query.sizes());
  }

  static std::optional<at::Tensor> mask_of(const AttentionCase& c) {
    if (!c.masked) return std::nullopt;
    at::Tensor mask = at::zeros({c.sequences, 1, 1, c.length});
    mask.select(0, 0).slice(2, c.length / 2 + 1).fill_(-std::numeric_limits<float>::infinity());
    return mask;
  }

  const AttentionCase case_ = GetParam();
  const std::int64_t tokens_ = case_.sequences * case_.length;
  const std::int64_t hidden_ = case_.heads * case_.size;
  const Attention attention_{case_.length, case_.heads, case_.causal, mask_of(case_)};
};

TEST_P(EveryAttention, AgreesWithThePlainFormulaAndItsGradients) {
  const at::Tensor inputs = random_rows(tokens_, 3 * hidden_, 1);
  const at::Tensor gradient = random_rows(tokens_, hidden_, 2);
  const Tensors parts = inputs.chunk(3, 1);
  const Attention::Output output = attention_.forward(parts[0], parts[1], parts[2]);
  const Attention::Gradients gradients = attention_.backward(parts[0], parts[1], parts[2], output, gradient);

  const c10::AutoGradMode record(true);
  Tensors leaves;
  for (const at::Tensor& part : parts) leaves.push_back(part.to(at::kDouble).contiguous().requires_grad_());
  const at::Tensor value = expected(leaves[0], leaves[1], leaves[2]);
  value.backward(gradient.to(at::kDouble));
  EXPECT_TRUE(at::allclose(output.value.to(at::kDouble), value.detach(), 1e-5, 1e-5));
  const at::Tensor all = at::cat({leaves[0].grad(), leaves[1].grad(), leaves[2].grad()}, 1);
  const double scale = all.abs().max().item<double>();
  EXPECT_LT((gradients.joined().to(at::kDouble) - all).abs().max().item<double>(), 1e-5 * scale);
  EXPECT_TRUE(at::equal(gradients.joined(), at::cat({gradients.query, gradients.key, gradients.value}, 1)));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, EveryAttention,
    testing::Values(AttentionCase{2, 1, 1, 4, true, false}, AttentionCase{3, 14, 4, 6, true, false},
                    AttentionCase{3, 14, 4, 6, false, true}, AttentionCase{2, 64, 2, 32, true, false},
                    AttentionCase{2, 65, 2, 16, true, false}, AttentionCase{1, 200, 2, 40, true, false},
                    AttentionCase{1, 200, 2, 40, false, false}, AttentionCase{2, 130, 1, 8, false, true}),
    [](const auto& tested) {
      const AttentionCase& c = tested.param;
      return std::to_string(c.sequences) + "x" + std::to_string(c.length) + "x" + std::to_string(c.heads) + "x" +
             std::to_string(c.size) + (c.causal ? "Causal" : "") + (c.masked ? "Masked" : "");
    });

}  // namespace
}  // namespace everstep::trainer
