// Blocks of the trainer on the device: forward and backward with the CPU's bits.
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/torch/test_model.h"
#include "trainer/torch/block.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;

// Sums of floats where the gradients are.
class Sums final : public GradientSink {
 public:
  explicit Sums(const Tensors& weights) {
    for (const at::Tensor& weight : weights) sums.push_back(at::zeros_like(weight, at::kFloat));
  }

  void add(int parameter, const at::Tensor& gradient) override { sums[parameter].add_(gradient); }
  void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) override {
    add(parameter, left.mm(right));
  }
  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    sums[parameter].index_add_(0, index, rows);
  }

  Tensors sums;
};

at::Tensor on(c10::Device device, const at::Tensor& tensor) { return tensor.defined() ? tensor.to(device) : tensor; }

// The output, the gradient of the input and the sums of one forward and two backwards.
Tensors run(const ModelConfig& config, int number, c10::Device device) {
  const RandomSamples data(config);
  const BatchTensors batch = to_tensors(*data.training(Position{3}), config, device);
  Tensors weights;
  for (const at::Tensor& weight : noisy_weights(config, number)) weights.push_back(on(device, weight));
  const auto noise = [&](int index) {
    const ParameterSpec like{
        "noise", {config.tokens_per_minibatch(), config.shape.hidden}, ParameterSpec::Init::kNormal, 1.0, true, false};
    return on(device, initial_value(config, 0, index, like).to(scalar_type(config)));
  };
  const auto block = std::move(make_blocks(config, number, number + 1).front());
  const BlockCall call{config, number, batch, Position{3}, true, 0.25};
  Tensors saved;
  Sums sink(weights);
  Tensors results{block->forward(weights, noise(1), call, saved)};
  for (int index = 2; index < 4; ++index) {
    OwedGradients owed;
    results.push_back(block->backward(weights, saved, noise(index), call, sink, owed));
    add_owed(owed, sink);
  }
  results.insert(results.end(), sink.sums.begin(), sink.sums.end());
  return results;
}

struct BlocksOnDevice : testing::TestWithParam<std::tuple<bool, int, Precision>> {};

INSTANTIATE_TEST_SUITE_P(Blocks, BlocksOnDevice,
                         testing::Combine(testing::Bool(), testing::Values(0, 2, 4),
                                          testing::Values(Precision::kFp32, Precision::kBf16)));

TEST_P(BlocksOnDevice, HaveTheCpusBits) {
  const auto [bert, number, precision] = GetParam();
  const c10::Device device = prepared_device();
  race_report();
  ModelConfig config = bert ? small_bert() : small_gpt();
  config.precision = precision;
  config.dropout = 0.25;
  config.next_sentence = bert;
  const Tensors expected = run(config, number, c10::kCPU);
  const Tensors actual = run(config, number, device);
  ASSERT_EQ(expected.size(), actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(expected[i], actual[i])) << "tensor " << i;
  EXPECT_EQ(race_report(), "");
}

}  // namespace
}  // namespace everstep::accelerator
