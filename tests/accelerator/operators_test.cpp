// Every operator that trainer/torch uses: on the device its bits, sizes and strides are those of the CPU.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/library.h>

#include "base/random.h"
#include "tests/accelerator/prepared_device.h"
#include "trainer/torch/ops.h"
#include "trainer/torch/product.h"
#include "trainer/torch/wide_product.h"

namespace everstep::accelerator {
namespace {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

at::Tensor numbers(at::IntArrayRef shape, at::ScalarType type, std::uint64_t seed = 1) {
  at::Tensor result = at::empty(shape, at::kFloat);
  const RandomStream stream{17, seed};
  auto* const data = result.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < result.numel(); ++i) data[i] = static_cast<float>(stream.uniform(i) * 4 - 2);
  return result.to(type);
}

at::Tensor integers(at::IntArrayRef shape, std::int64_t bound, std::uint64_t seed = 1) {
  at::Tensor result = at::empty(shape, at::kLong);
  const RandomStream stream{18, seed};
  auto* const data = result.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < result.numel(); ++i) {
    data[i] = static_cast<std::int64_t>(stream.below(i, static_cast<std::uint64_t>(bound)));
  }
  return result;
}

Tensors copies(const Tensors& tensors, c10::Device device) {
  Tensors result;
  for (const at::Tensor& tensor : tensors) {
    at::Tensor copy = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device));
    result.push_back(copy.copy_(tensor));
  }
  return result;
}

// Compares results, and the arguments, which it may have changed.
void expect_same(const std::string& name, const Tensors& arguments, const Function& function) {
  const c10::Device device = prepared_device();
  Tensors on_cpu = copies(arguments, c10::kCPU);
  Tensors on_device = copies(arguments, device);
  for (const at::Tensor& result : function(on_cpu)) on_cpu.push_back(result);
  for (const at::Tensor& result : function(on_device)) on_device.push_back(result);
  ASSERT_EQ(on_cpu.size(), on_device.size()) << name;
  for (std::size_t i = 0; i < on_cpu.size(); ++i) {
    EXPECT_TRUE(!on_device[i].defined() || on_device[i].device() == device) << name;
    EXPECT_TRUE(same_bits(on_cpu[i], on_device[i])) << name << ", " << on_cpu[i].scalar_type() << ", tensor " << i;
  }
  EXPECT_EQ(race_report(), "") << name;
}

Tensors list(std::tuple<at::Tensor, at::Tensor, at::Tensor> triple) {
  return {std::get<0>(triple), std::get<1>(triple), std::get<2>(triple)};
}

struct Operators : testing::TestWithParam<at::ScalarType> {
  at::Tensor random(at::IntArrayRef shape, std::uint64_t seed = 1) const { return numbers(shape, GetParam(), seed); }
};

INSTANTIATE_TEST_SUITE_P(Types, Operators, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& type) { return std::string(c10::toString(type.param)); });

TEST_P(Operators, MultiplyMatrices) {
  using trainer::product;
  const Tensors arguments{random({13}), random({70, 24}, 2), random({24, 13}, 3), random({13, 24}, 4)};
  expect_same("multiply_", arguments, [](const Tensors& in) -> Tensors {
    return {product(in[1], in[2], in[0]), product(in[1], in[3].t(), in[0]), product(in[1], in[2]),
            product(in[1].t(), in[1]), product(in[1].chunk(3, 1)[1].t(), in[1])};
  });
  if (GetParam() != at::kFloat) return;
  expect_same("add_product_", {random({24, 13}), random({70, 24}, 2), random({70, 13}, 3)},
              [](const Tensors& in) -> Tensors {
                trainer::ops::add_product(in[0], in[1].t(), in[2]);
                return {};
              });
}

TEST_P(Operators, Sum) {
  expect_same("sum", {random({70, 24})}, [](const Tensors& in) -> Tensors {
    return {in[0].sum(0, false, at::kFloat), in[0].view({7, 10, 24}).sum(0, false, at::kFloat), in[0].sum()};
  });
}

TEST_P(Operators, NormaliseLayers) {
  const Tensors arguments{random({70, 24}), random({24}, 2), random({24}, 3), random({70, 24}, 4)};
  expect_same("native_layer_norm", arguments,
              [](const Tensors& in) { return list(at::native_layer_norm(in[0], {24}, in[1], in[2], 1e-5)); });
  for (const bool needs_bias : {true, false}) {
    expect_same("native_layer_norm_backward", arguments, [&](const Tensors& in) {
      const auto [value, mean, deviation] = at::native_layer_norm(in[0], {24}, in[1], in[2], 1e-5);
      return list(
          at::native_layer_norm_backward(in[3], in[0], {24}, mean, deviation, in[1], in[2], {true, true, needs_bias}));
    });
  }
}

TEST_P(Operators, Attend) {
  at::Tensor mask = at::zeros({5, 1, 1, 14}, GetParam());
  mask.select(0, 2).slice(2, 9).fill_(-std::numeric_limits<float>::infinity());
  for (const bool causal : {true, false}) {
    expect_same("attention", {random({70, 72}), random({70, 24}, 2), mask}, [&](const Tensors& in) {
      const auto by_head = [](const at::Tensor& part) { return part.view({5, 14, 4, 6}).transpose(1, 2); };
      const Tensors parts = in[0].chunk(3, 1);
      const auto query = by_head(parts[0]), key = by_head(parts[1]), value = by_head(parts[2]);
      const auto masked = causal ? std::nullopt : std::optional(in[2]);
      const auto [output, log_sum] =
          at::_scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, causal, masked);
      Tensors results = list(at::_scaled_dot_product_flash_attention_for_cpu_backward(
          by_head(in[1]), query, key, value, output, log_sum, 0.0, causal, masked));
      results.insert(results.end(), {output, log_sum, output.transpose(1, 2).reshape({70, 24}), at::cat(results, 1)});
      return results;
    });
  }
}

TEST(FloatOperators, Attend) {
  if (!trainer::has_wide_product()) return;  // LibTorch attends on this CPU
  at::Tensor mask = at::zeros({5, 1, 1, 14});
  mask.select(0, 2).slice(2, 9).fill_(-std::numeric_limits<float>::infinity());
  for (const bool causal : {true, false}) {
    const Tensors arguments{numbers({70, 72}, at::kFloat), numbers({70, 24}, at::kFloat, 2), mask};
    expect_same("attend_", arguments, [&](const Tensors& in) -> Tensors {
      trainer::ops::AttentionHeads heads{14, 4, causal, {}};
      if (!causal) heads.mask = in[2];
      const Tensors parts = in[0].chunk(3, 1);
      const at::Tensor output = at::empty_like(in[1]);
      const at::Tensor log_sums = at::empty({5, 4, 14}, in[1].options());
      trainer::ops::attend(output, log_sums, parts[0], parts[1], parts[2], heads);
      const at::Tensor gradient = at::empty_like(in[0]);
      const Tensors gradients = gradient.chunk(3, 1);
      trainer::ops::attend_backward(gradients[0], gradients[1], gradients[2], in[1], parts[0], parts[1], parts[2],
                                    output, log_sums, heads);
      return {output, log_sums, gradient};
    });
  }
}

TEST_P(Operators, Activate) {
  const Tensors arguments{random({70, 24}), random({70, 24}, 2)};
  expect_same("gelu", arguments, [](const Tensors& in) -> Tensors {
    return {at::gelu(in[0]), at::gelu_backward(in[1], in[0]), at::gelu(in[0], "tanh")};
  });
  expect_same("tanh", arguments, [](const Tensors& in) -> Tensors {
    const at::Tensor pooled = at::Tensor(in[0]).tanh_();
    return {at::tanh_backward(in[1], pooled)};
  });
  expect_same("_log_softmax", {random({30, 37})}, [](const Tensors& in) -> Tensors {
    return {at::_log_softmax(in[0], 1, false), at::_log_softmax(in[0].to(at::kFloat), 1, false), at::exp(in[0])};
  });
}

TEST_P(Operators, LookUp) {
  const Tensors arguments{random({37, 24}), integers({5, 14}, 37), random({70, 24}, 2)};
  expect_same("index_select", arguments, [](const Tensors& in) -> Tensors {
    const at::Tensor rows = in[0].index_select(0, in[1].view(-1));
    rows.view({-1, 14, 24}).add_(in[0].narrow(0, 0, 14));
    return {rows};
  });
  expect_same("embedding_dense_backward", arguments, [](const Tensors& in) -> Tensors {
    const auto [distinct, place, counts] = at::_unique2(in[1].view(-1), true, true, false);
    const at::Tensor rows = at::embedding_dense_backward(in[2].to(at::kFloat), place, distinct.numel(), -1, false);
    at::Tensor sums = at::zeros({37, 24}, in[2].options().dtype(at::kFloat));
    return {distinct, place, rows, sums.index_add_(0, distinct, rows)};
  });
  expect_same("index_copy_", {random({70, 24}), at::arange(0, 70, 7, at::kLong), random({10, 24}, 2)},
              [](const Tensors& in) -> Tensors {
                return {at::zeros({70, 24}, in[0].options()).index_copy_(0, in[1], in[2])};
              });
}

TEST_P(Operators, JoinAndCut) {
  expect_same("cat", {random({70, 24}), random({70, 24}, 2)}, [](const Tensors& in) -> Tensors {
    const at::Tensor all = at::cat({in[0], in[1]}, 1);
    return {all, all.chunk(3, 1)[1].contiguous(), all.select(1, 0), all.t().contiguous(), all.narrow(0, 3, 5)};
  });
  expect_same("select", {random({70, 24}), random({5, 24}, 2)}, [](const Tensors& in) -> Tensors {
    in[0].view({-1, 14, 24}).select(1, 0).add_(in[1]);
    return {in[0].clone(), at::empty_like(in[0]).copy_(in[0]), at::zeros_like(in[0])};
  });
}

TEST_P(Operators, ComputeElementByElement) {
  const Tensors arguments{random({70, 24}), random({70, 24}, 2), random({}, 3)};
  expect_same("add_", arguments, [](const Tensors& in) -> Tensors {
    at::Tensor sum = in[0];
    sum.add_(in[1]).mul_(0.3);
    return {sum + in[1], sum * in[2], in[2] * 2.5, in[2] + in[2], sum.div(3), sum.abs(), sum.neg()};
  });
  expect_same("to", arguments, [](const Tensors& in) -> Tensors {
    return {in[0].to(at::kFloat), in[0].to(at::kBFloat16), in[0].to(at::kDouble), in[0].t().to(at::kFloat)};
  });
  expect_same("fill_", {random({7, 5})}, [](const Tensors& in) -> Tensors {
    at::Tensor filled = in[0];
    filled.select(0, 3).zero_();
    filled.select(1, 2).fill_(-1.5);
    return {at::full({3, 4}, 2.5, filled.options()), at::ones({2}, filled.options())};
  });
}

TEST(IntegerOperators, HaveTheSameBits) {
  const Tensors arguments{integers({70}, 37), integers({70}, 5, 2)};
  expect_same("arange", arguments, [](const Tensors& in) -> Tensors {
    return {at::arange(14, in[0].options()), at::arange(3, 14, in[0].options())};
  });
  expect_same("labels", arguments, [](const Tensors& in) -> Tensors {
    const at::Tensor places = in[1].ne(3).nonzero().squeeze(1);
    const at::Tensor rows = at::ones({70, 4}, in[0].options().dtype(at::kFloat));
    rows.mul_(in[1].ne(3).unsqueeze(1));
    return {places, in[0].index_select(0, places), rows, in[1].eq(3)};
  });
  expect_same("sums", arguments, [](const Tensors& in) -> Tensors {
    at::Tensor sum = in[0];
    sum.add_(in[1]);
    return {sum.view({7, 10}).sum(0), at::cat({sum, in[1]}), sum.to(at::kFloat), sum * 3};
  });
}

TEST(SingleNumbers, HaveTheSameBits) {
  expect_same("scalar_tensor", {at::full({4}, 2.0F)}, [](const Tensors& in) -> Tensors {
    const at::Tensor one = at::scalar_tensor(0.1, in[0].options());
    return {one, one + in[0].sum(), one.to(at::kDouble)};
  });
}

// ---- operators of other libraries, which write to their arguments and return nothing ----

TORCH_LIBRARY(fake_accelerator_test, library) {
  library.def("add_twice_(Tensor(a!) sums, Tensor addend, float factor, Tensor(b!) count) -> ()");
}

void add_twice(at::Tensor sums, const at::Tensor& addend, double factor, at::Tensor count) {
  auto* const to = sums.mutable_data_ptr<float>();
  const auto* const from = addend.const_data_ptr<float>();
  for (std::int64_t i = 0; i < sums.numel(); ++i) to[i] += 2 * from[i] * static_cast<float>(factor);
  *count.mutable_data_ptr<std::int64_t>() += 1;
}

TORCH_LIBRARY_IMPL(fake_accelerator_test, CPU, library) { library.impl("add_twice_", &add_twice); }

void call_add_twice(at::Tensor sums, const at::Tensor& addend, at::Tensor count) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("fake_accelerator_test::add_twice_", "")
                             .typed<void(at::Tensor, const at::Tensor&, double, at::Tensor)>();
  op.call(std::move(sums), addend, 0.3, std::move(count));
}

TEST(OperatorsThatReturnNothing, RunWithoutADryRunOrAWait) {
  expect_same("add_twice_", {numbers({50}, at::kFloat), numbers({50}, at::kFloat, 2), at::zeros({1}, at::kLong)},
              [](const Tensors& in) -> Tensors {
                const auto waits = fake_accelerator().counters().waits;
                const auto dry = dry_runs();
                for (int i = 0; i < 3; ++i) call_add_twice(in[0], in[1], in[2]);
                EXPECT_EQ(fake_accelerator().counters().waits, waits);
                EXPECT_EQ(dry_runs(), dry);
                return {};
              });
}

}  // namespace
}  // namespace everstep::accelerator
