#include "trainer/update/optimizer.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trainer/update/fixed_point.h"

namespace everstep::trainer {
namespace {

// Three parameters: one that decays, one that does not, and sizes that leave gaps and odd ends.
StageLayout small_layout() {
  StageLayout layout;
  ParameterSpec weight{.name = "weight", .shape = {5, 7}};
  ParameterSpec bias{.name = "bias", .shape = {3}, .decay = false};
  layout.entries = {{0, 0, weight, 0}, {0, 1, bias, 48}};
  layout.elements = 64;
  return layout;
}

Buffer filled(std::int64_t elements, double (*value)(std::int64_t)) {
  const Buffer buffer = allocate_zeroed(elements * sizeof(float));
  for (const StageLayout::Entry& entry : small_layout().entries) {
    for (std::int64_t i = 0; i < entry.parameter.elements(); ++i) {
      buffer.as<float>()[entry.offset + i] = static_cast<float>(value(entry.offset + i));
    }
  }
  return buffer;
}

Buffer copy_of(const Buffer& buffer) {
  const Buffer copy = allocate_scratch(buffer.size);
  std::memcpy(copy.data, buffer.data, buffer.size);
  return copy;
}

double gradient_at(std::int64_t i) { return std::sin(static_cast<double>(i) + 1) * 0.3; }
double weight_at(std::int64_t i) { return std::cos(static_cast<double>(i)) * 2; }

std::vector<double> known(const std::vector<Noted<double>>& noted) {
  std::vector<double> values;
  for (const Noted<double>& each : noted) values.push_back(each.value());
  return values;
}

TEST(Optimizer, FollowsTheFormulaOfAdamW) {
  const StageLayout layout = small_layout();
  const AdamOptions options{.beta1 = 0.8, .beta2 = 0.9, .epsilon = 1e-6, .weight_decay = 0.05};
  StageOptimizer optimizer(layout, Precision::kFp32, Accumulation::kFloat, options, {});
  const Buffer weights = filled(layout.elements, weight_at);
  std::vector<double> expected(weights.as<float>().begin(), weights.as<float>().end());
  std::vector<double> first(layout.elements, 0);
  std::vector<double> second(layout.elements, 0);
  for (int step = 1; step <= 4; ++step) {
    const Buffer gradient = filled(layout.elements, gradient_at);
    const double rate = 0.01 * step;
    for (const StageLayout::Entry& entry : layout.entries) {
      for (std::int64_t i = entry.offset; i < entry.offset + entry.parameter.elements(); ++i) {
        const double g = gradient_at(i) * 0.5;
        first[i] = 0.8 * first[i] + 0.2 * g;
        second[i] = 0.9 * second[i] + 0.1 * g * g;
        if (entry.parameter.decay) expected[i] *= 1 - rate * 0.05;
        const double root = std::sqrt(second[i] / (1 - std::pow(0.9, step)));
        expected[i] -= rate * (first[i] / (1 - std::pow(0.8, step))) / (root + 1e-6);
      }
    }
    optimizer.step({rate, 0.5, step}, gradient, weights);
    for (const float sum : gradient.as<float>()) ASSERT_EQ(sum, 0);
  }
  for (std::int64_t i = 0; i < layout.elements; ++i) {
    EXPECT_NEAR(weights.as<float>()[i], expected[i], 1e-5) << i;
  }
}

TEST(Optimizer, TakesFixedPointSumsAsTheFloatsTheyStandFor) {
  const StageLayout layout = small_layout();
  const Buffer floats = filled(layout.elements, gradient_at);
  const Buffer sums = allocate_zeroed(layout.elements * sizeof(std::int64_t));
  for (std::int64_t i = 0; i < layout.elements; ++i) {
    sums.as<std::int64_t>()[i] = std::llround(static_cast<double>(floats.as<float>()[i]) * kFixedPointScale);
    floats.as<float>()[i] = from_fixed_point(sums.as<std::int64_t>()[i]);
  }
  StageOptimizer by_float(layout, Precision::kFp32, Accumulation::kFloat, {}, {});
  StageOptimizer by_integer(layout, Precision::kFp32, Accumulation::kFixedPoint, {}, {});
  EXPECT_EQ(known(by_float.sums_of_squares(floats)), known(by_integer.sums_of_squares(sums)));
  const Buffer a = filled(layout.elements, weight_at);
  const Buffer b = copy_of(a);
  by_float.step({0.1, 1, 1}, floats, a);
  by_integer.step({0.1, 1, 1}, sums, b);
  EXPECT_EQ(std::memcmp(a.data, b.data, a.size), 0);
}

TEST(Optimizer, StepsAnFp32MasterAndRoundsItToBf16) {
  const StageLayout layout = small_layout();
  const Buffer master = filled(layout.elements, weight_at);
  const Buffer reference = copy_of(master);
  StageOptimizer fp32(layout, Precision::kFp32, Accumulation::kFloat, {}, {});
  StageOptimizer bf16(layout, Precision::kBf16, Accumulation::kFloat, {}, master);
  const Buffer rounded = allocate_zeroed(layout.elements * 2);
  for (int step = 1; step <= 3; ++step) {
    fp32.step({0.01, 1, step}, filled(layout.elements, gradient_at), reference);
    bf16.step({0.01, 1, step}, filled(layout.elements, gradient_at), rounded);
  }
  for (std::int64_t i = 0; i < layout.elements; ++i) {
    const float exact = reference.as<float>()[i];
    const float stored = std::bit_cast<float>(static_cast<std::uint32_t>(rounded.as<std::uint16_t>()[i]) << 16);
    EXPECT_LE(std::abs(stored - exact), std::abs(exact) / 256) << i;
  }
  EXPECT_EQ(bf16.state_bytes(), 12 * layout.elements);
  EXPECT_EQ(fp32.state_bytes(), 8 * layout.elements);
}

TEST(Optimizer, ReportsAGradientThatIsNotFinite) {
  const StageLayout layout = small_layout();
  const StageOptimizer optimizer(layout, Precision::kFp32, Accumulation::kFloat, {}, {});
  const Buffer gradient = filled(layout.elements, gradient_at);
  gradient.as<float>()[49] = std::nanf("");
  const std::vector<double> sums = known(optimizer.sums_of_squares(gradient));
  EXPECT_TRUE(std::isfinite(sums[0]));
  EXPECT_FALSE(std::isfinite(sums[1]));
}

}  // namespace
}  // namespace everstep::trainer
