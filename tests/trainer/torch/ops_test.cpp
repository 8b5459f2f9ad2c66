#include "trainer/torch/ops.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/model/data_source.h"

namespace everstep::trainer {
namespace {

using kernels::edge_floats;
using kernels::kSizes;
using kernels::random_floats;
using kernels::same;

at::Tensor tensor_of(const std::vector<float>& values) { return at::tensor(values, at::kFloat); }

std::vector<float> floats_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kFloat).contiguous();
  return {dense.const_data_ptr<float>(), dense.const_data_ptr<float>() + dense.numel()};
}

at::Tensor flag() { return at::zeros({1}, at::kByte); }
bool is_set(const at::Tensor& flag) { return flag.item<std::uint8_t>() != 0; }

TEST(Ops, ReturnNothingAndSayWhatTheyChange) {
  int found = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("everstep::")) continue;
    ++found;
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(name.name.c_str(), "");
    EXPECT_TRUE(op.schema().returns().empty()) << name.name;
    EXPECT_TRUE(op.schema().is_mutable()) << name.name;
    EXPECT_TRUE(op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) << name.name;
  }
  EXPECT_EQ(found, 19);
}

TEST(Ops, AddSums) {
  const at::Tensor floats = tensor_of({1, 2, 3});
  ops::add_sums(floats, tensor_of({0.5, -2, 1}));
  EXPECT_EQ(floats_of(floats), (std::vector<float>{1.5, 0, 4}));
  const at::Tensor integers = at::tensor({std::numeric_limits<std::int64_t>::max(), std::int64_t{5}});
  ops::add_sums(integers, at::tensor({std::int64_t{1}, std::int64_t{-7}}));
  EXPECT_EQ(integers[0].item<std::int64_t>(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(integers[1].item<std::int64_t>(), -2);
}

TEST(Ops, AddFixedPointAndNoteWhatDoesNotFit) {
  const at::Tensor sums = at::full({4}, 10, at::kLong);
  const at::Tensor overflow = flag();
  ops::add_fixed_point(sums, tensor_of({1, -0.5, 9, 0x1p-49F}), 16'000, overflow);
  EXPECT_FALSE(is_set(overflow));
  const std::int64_t one = std::int64_t{1} << 48;
  EXPECT_TRUE(at::equal(sums, at::tensor({10 + one, 10 - one / 2, 10 + 9 * one, std::int64_t{10}})));
  ops::add_fixed_point(sums, tensor_of({1, 2, 0, std::nanf("")}), 2, overflow);
  EXPECT_TRUE(is_set(overflow));
  EXPECT_TRUE(at::equal(sums, at::tensor({10 + 2 * one, 10 - one / 2, 10 + 9 * one, std::int64_t{10}})));
  ops::add_fixed_point(sums, tensor_of({0, 0, 0, 0}), 2, overflow);
  EXPECT_TRUE(is_set(overflow));
}

TEST(Ops, AddFixedPointRows) {
  const at::Tensor sums = at::zeros({5, 3}, at::kLong);
  const at::Tensor overflow = flag();
  const at::Tensor index = at::tensor({std::int64_t{4}, std::int64_t{1}});
  const at::Tensor rows = tensor_of({1, 2, 3, 4, 5, 6}).view({2, 3});
  ops::add_fixed_point_rows(sums, index, rows, tensor_of({16'000, 16'000}), overflow);
  EXPECT_FALSE(is_set(overflow));
  const at::Tensor expected = at::zeros({5, 3}, at::kDouble).index_add(0, index, rows.to(at::kDouble));
  EXPECT_TRUE(at::equal(sums.to(at::kDouble).mul(0x1p-48), expected));
  ops::add_fixed_point_rows(sums, index, rows, tensor_of({16'000, 6}), overflow);
  EXPECT_TRUE(is_set(overflow));
}

TEST(Ops, StepAsAdamWDoesAndRoundTheMaster) {
  const kernels::AdamWConstants c{0.5F, 0.8F, 0.2F, 0.9F, 0.1F, 0.99F, 0.01F, 0.3F, 1e-6F};
  for (const bool fixed : {false, true}) {
    const std::vector<float> gradient = random_floats(1003, 1, -10, 3);
    const at::Tensor master = tensor_of(random_floats(1003, 2));
    const at::Tensor before = master.to(at::kDouble);
    const at::Tensor first = at::zeros({1003});
    const at::Tensor second = at::zeros({1003});
    at::Tensor sums = tensor_of(gradient);
    const at::Tensor g = sums.to(at::kDouble).mul(0.5);
    if (fixed) sums = sums.to(at::kDouble).mul(0x1p48).round().to(at::kLong);
    ops::adamw(master, first, second, sums, c);
    EXPECT_FALSE(sums.any().item<bool>());
    EXPECT_TRUE(at::allclose(first.to(at::kDouble), g.mul(0.2), 1e-6, 1e-9));
    EXPECT_TRUE(at::allclose(second.to(at::kDouble), g.square().mul(0.1), 1e-6, 1e-9));
    const at::Tensor step = g.mul(0.2).div(g.square().mul(0.1).sqrt().div(0.3).add(1e-6));
    EXPECT_TRUE(at::allclose(master.to(at::kDouble), before.mul(0.99).sub(step.mul(0.01)), 1e-5, 1e-6));
    const at::Tensor weights = at::empty({1003}, at::kBFloat16);
    ops::round_to_bf16(weights, master);
    EXPECT_TRUE(at::equal(weights, master.to(at::kBFloat16)));
  }
}

TEST(Ops, SumSquares) {
  const at::Tensor sum = at::empty({1}, at::kDouble);
  for (const std::int64_t size : kSizes) {
    const std::vector<float> values = random_floats(size, 3);
    ops::sum_of_squares(sum, tensor_of(values));
    double expected = 0;
    for (std::size_t first = 0; first < values.size(); first += 4096) {
      double lanes[8] = {};
      for (std::size_t i = first; i < std::min(first + 4096, values.size()); ++i) {
        lanes[i % 8] += static_cast<double>(values[i]) * static_cast<double>(values[i]);
      }
      double chunk = 0;
      for (const double lane : lanes) chunk += lane;
      expected += chunk;
    }
    EXPECT_EQ(sum.item<double>(), expected) << size;
  }
}

TEST(Ops, NoteWhatIsNotFinite) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor values = at::full({100}, 1e30, type);
    const at::Tensor seen = flag();
    ops::note_not_finite(seen, values);
    EXPECT_FALSE(is_set(seen));
    for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      const at::Tensor spoilt = values.clone();
      spoilt[99] = bad;
      seen.zero_();
      ops::note_not_finite(seen, spoilt);
      EXPECT_TRUE(is_set(seen));
      ops::note_not_finite(seen, values);
      EXPECT_TRUE(is_set(seen));
    }
  }
}

TEST(Ops, HashAndSwapBytesOfAnyType) {
  const at::Tensor first = at::empty({1}, at::kLong);
  const at::Tensor second = at::empty({1}, at::kLong);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kLong, at::kByte}) {
    const at::Tensor left = at::arange(50'001, at::kFloat).remainder(250).to(type);
    const at::Tensor right = left.flip(0).add(1);
    const at::Tensor old_left = left.clone();
    const at::Tensor old_right = right.clone();
    ops::hash(first, left);
    ops::swap(left, right);
    EXPECT_TRUE(at::equal(left, old_right));
    EXPECT_TRUE(at::equal(right, old_left));
    ops::hash(second, left);
    EXPECT_NE(first.item<std::int64_t>(), second.item<std::int64_t>());
    ops::hash(second, right);
    EXPECT_EQ(first.item<std::int64_t>(), second.item<std::int64_t>());
  }
}

TEST(Ops, ComputeCrossEntropyAndItsGradient) {
  for (const int ignored_every : {0, 3, 1}) {
    const at::Tensor logits = tensor_of(random_floats(std::int64_t{60} * 17, 4, -3, 3)).view({60, 17});
    at::Tensor labels = at::arange(60, at::kLong).remainder(17);
    if (ignored_every > 0) labels.slice(0, 0, 60, ignored_every).fill_(kIgnoredLabel);
    const at::Tensor log_probabilities = at::_log_softmax(logits, 1, false);
    const at::Tensor loss = at::empty({}, at::kFloat);
    ops::cross_entropy(loss, log_probabilities, labels);
    const at::Tensor gradient = at::empty_like(log_probabilities);
    ops::cross_entropy_backward(gradient, log_probabilities, labels, 0.25);
    const auto counted = labels.ne(kIgnoredLabel).sum().item<std::int64_t>();
    if (counted == 0) {
      EXPECT_EQ(loss.item<float>(), 0);
      EXPECT_FALSE(gradient.any().item<bool>());
      continue;
    }
    const at::Tensor mean = at::nll_loss(log_probabilities.to(at::kDouble), labels, {}, at::Reduction::Mean, -100);
    EXPECT_NEAR(loss.item<double>(), mean.item<double>(), 1e-6);
    const at::Tensor is_counted = labels.ne(kIgnoredLabel).unsqueeze(1).to(at::kDouble);
    const at::Tensor hot = at::one_hot(labels.clamp_min(0), 17).to(at::kDouble);
    const at::Tensor expected =
        log_probabilities.to(at::kDouble).exp().sub(hot).mul(is_counted).mul(0.25 / static_cast<double>(counted));
    EXPECT_TRUE(at::allclose(gradient.to(at::kDouble), expected, 1e-5, 1e-8));
  }
}

TEST(Ops, RefuseTensorsOfAnotherKind) {
  const at::Tensor floats = at::zeros({4, 4});
  const at::Tensor halves = at::zeros({4, 4}, at::kBFloat16);
  EXPECT_THROW(ops::gelu(floats, halves), c10::Error);
  EXPECT_THROW(ops::gelu(floats, at::zeros({4, 4}).t()), c10::Error);
  EXPECT_THROW(ops::gelu(floats, at::zeros({3, 4})), c10::Error);
  EXPECT_THROW(ops::add_sums(halves, halves), c10::Error);
  EXPECT_THROW(ops::multiply(floats, floats, at::zeros({3, 4}), std::nullopt), c10::Error);
  EXPECT_THROW(ops::multiply(floats, floats, halves, std::nullopt), c10::Error);
  EXPECT_THROW(ops::multiply(floats, floats, at::zeros({8, 8}).slice(0, 0, 8, 2).slice(1, 0, 8, 2), std::nullopt),
               c10::Error);
  EXPECT_THROW(ops::multiply(floats, floats, floats, at::zeros({3})), c10::Error);
  EXPECT_THROW(ops::add_product(halves, halves, halves), c10::Error);
  EXPECT_THROW(ops::attend(floats, at::zeros({4, 2}), floats, floats, floats, {3, 2, true, {}}), c10::Error);
  EXPECT_THROW(ops::attend(floats, at::zeros({4, 2}), floats, floats.t(), floats, {2, 2, true, {}}), c10::Error);
  EXPECT_THROW(ops::attend(floats, at::zeros({4, 1}), floats, floats, floats, {2, 2, true, {}}), c10::Error);
  EXPECT_THROW(ops::add_fixed_point(at::zeros({3}, at::kLong), at::zeros({4}), 1, flag()), c10::Error);
  EXPECT_THROW(ops::sum_of_squares(at::zeros({1}), floats), c10::Error);
  EXPECT_THROW(ops::cross_entropy(at::zeros({}), floats, at::zeros({3}, at::kLong)), c10::Error);
}

}  // namespace
}  // namespace everstep::trainer
