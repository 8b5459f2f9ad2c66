#include "trainer/torch/product.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/torch/ops.h"
#include "trainer/torch/wide_product.h"

namespace everstep::trainer {
namespace {

using kernels::random_floats;

at::Tensor random_matrix(std::int64_t rows, std::int64_t columns, int seed) {
  return at::tensor(random_floats(rows * columns, seed, -2, 2), at::kFloat).view({rows, columns});
}

// The same numbers with dense columns.
at::Tensor turned(const at::Tensor& matrix) { return matrix.t().contiguous().t(); }

// As a part of a larger matrix.
at::Tensor inside(const at::Tensor& matrix) {
  at::Tensor larger = at::full({matrix.size(0) + 2, matrix.size(1) + 5}, std::nanf(""));
  at::Tensor part = larger.narrow(0, 1, matrix.size(0)).narrow(1, 3, matrix.size(1));
  return part.copy_(matrix);
}

// Chains of 256 fused multiply-adds, added up one after the other: as wide_product.h promises.
float element_of(const at::Tensor& left, const at::Tensor& right, std::int64_t row, std::int64_t column,
                 const float* addend) {
  const auto a = left.accessor<float, 2>();
  const auto b = right.accessor<float, 2>();
  float total = addend == nullptr ? 0 : *addend;
  for (std::int64_t first = 0; first < left.size(1); first += 256) {
    float sum = 0;
    for (std::int64_t k = first; k < std::min<std::int64_t>(first + 256, left.size(1)); ++k) {
      sum = std::fma(a[row][k], b[k][column], sum);
    }
    total = first == 0 && addend == nullptr ? sum : total + sum;
  }
  return total;
}

struct Sizes {
  std::int64_t rows;
  std::int64_t depth;
  std::int64_t columns;
};

class EveryProduct : public testing::TestWithParam<Sizes> {
 protected:
  const Sizes sizes_ = GetParam();
  const at::Tensor left_ = random_matrix(sizes_.rows, sizes_.depth, 1);
  const at::Tensor right_ = random_matrix(sizes_.depth, sizes_.columns, 2);
};

TEST_P(EveryProduct, IsChainsOfFusedMultiplyAdds) {
  if (!has_wide_product()) return;  // LibTorch multiplies on this CPU
  const at::Tensor bias = random_matrix(1, sizes_.columns, 3).view(-1);
  const at::Tensor sums = random_matrix(sizes_.rows, sizes_.columns, 4);
  const at::Tensor plain = product(left_, right_);
  const at::Tensor biased = product(left_, right_, bias);
  const at::Tensor added = sums.clone();
  ops::add_product(added, left_, right_);
  for (std::int64_t row = 0; row < sizes_.rows; ++row) {
    for (std::int64_t column = 0; column < sizes_.columns; ++column) {
      const float addend = bias[column].item<float>();
      const float sum = sums[row][column].item<float>();
      ASSERT_EQ(plain[row][column].item<float>(), element_of(left_, right_, row, column, nullptr));
      ASSERT_EQ(biased[row][column].item<float>(), element_of(left_, right_, row, column, &addend));
      ASSERT_EQ(added[row][column].item<float>(), element_of(left_, right_, row, column, &sum));
    }
  }
}

TEST_P(EveryProduct, HasTheSameBitsHoweverItsFactorsLie) {
  if (!has_wide_product()) return;  // LibTorch promises no such thing
  const at::Tensor expected = product(left_, right_);
  for (const at::Tensor& left : {left_, turned(left_), inside(left_), inside(left_.t()).t()}) {
    for (const at::Tensor& right : {right_, turned(right_), inside(right_), inside(right_.t()).t()}) {
      EXPECT_TRUE(at::equal(product(left, right), expected));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, EveryProduct,
                         testing::Values(Sizes{1, 1, 1}, Sizes{8, 256, 32}, Sizes{9, 257, 33}, Sizes{7, 15, 31},
                                         Sizes{23, 600, 17}, Sizes{5, 40, 100}, Sizes{530, 20, 3}),
                         [](const auto& tested) {
                           const Sizes& sizes = tested.param;
                           return std::to_string(sizes.rows) + "x" + std::to_string(sizes.depth) + "x" +
                                  std::to_string(sizes.columns);
                         });

TEST(Product, AgreesWithLibTorchInBothPrecisions) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor left = random_matrix(70, 48, 1).to(type);
    const at::Tensor right = random_matrix(48, 26, 2).to(type);
    const at::Tensor bias = random_matrix(1, 26, 3).view(-1).to(type);
    const double tolerance = type == at::kFloat ? 1e-6 : 2e-2;
    const at::Tensor expected = left.to(at::kDouble).mm(right.to(at::kDouble));
    EXPECT_TRUE(at::allclose(product(left, right).to(at::kDouble), expected, tolerance, tolerance));
    EXPECT_TRUE(at::allclose(product(left, right, bias).to(at::kDouble), expected + bias, tolerance, tolerance));
    EXPECT_EQ(product(left, right).scalar_type(), type);
  }
}

TEST(Product, OfNothingIsNothing) {
  const at::Tensor none = at::empty({0, 4});
  EXPECT_EQ(product(none, at::ones({4, 3})).size(0), 0);
  const at::Tensor zeros = product(at::empty({2, 0}), at::empty({0, 3}));
  EXPECT_TRUE(at::equal(zeros, at::zeros({2, 3})));
  const at::Tensor sums = at::ones({4, 3});
  ops::add_product(sums, none.t(), at::empty({0, 3}));
  EXPECT_TRUE(at::equal(sums, at::ones({4, 3})));
}

}  // namespace
}  // namespace everstep::trainer
