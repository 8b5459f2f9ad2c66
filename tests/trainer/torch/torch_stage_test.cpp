#include "trainer/torch/torch_stage.h"

#include <functional>
#include <string>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "tests/trainer/torch/test_model.h"
#include "trainer/update/fixed_point.h"

namespace everstep::trainer {
namespace {

bool equal_bits(const Tensors& left, const Tensors& right) {
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (!at::equal(left[i], right[i])) return false;
  }
  return true;
}

bool any_nonzero(const Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const at::Tensor& t) { return t.any().item<bool>(); });
}

std::vector<int> whole(const ModelConfig& config) { return {0, config.blocks()}; }

struct PassResult {
  double loss = 0;
  Tensors gradients;
};

// Two minibatches forward, then both backward, as a pipeline would.
PassResult run_two(const ModelConfig& config, const std::vector<int>& cuts, Accumulation accumulation) {
  const RandomSamples data(config);
  CutModel model(config, cuts, accumulation, data);
  PassResult run;
  run.loss = model.forward(Position{3}) + model.forward(Position{4});
  model.backward(Position{3});
  model.backward(Position{4});
  run.gradients = model.gradients();
  return run;
}

class EveryModel : public testing::TestWithParam<std::tuple<bool, Precision, Accumulation>> {
 protected:
  EveryModel() : accumulation_(std::get<2>(GetParam())) {
    prepare_torch(1);
    config_ = std::get<0>(GetParam()) ? small_bert() : small_gpt();
    config_.next_sentence = std::get<0>(GetParam());
    config_.precision = std::get<1>(GetParam());
    config_.dropout = 0.25;
  }

  ModelConfig config_;
  Accumulation accumulation_;
};

TEST_P(EveryModel, HasTheSameBitsUnderEveryCut) {
  const PassResult reference = run_two(config_, whole(config_), accumulation_);
  EXPECT_TRUE(any_nonzero(reference.gradients));
  for (const std::vector<int>& cuts : {std::vector{0, 1, 5}, {0, 2, 5}, {0, 4, 5}, {0, 1, 3, 5}, {0, 1, 2, 3, 4, 5}}) {
    const PassResult cut = run_two(config_, cuts, accumulation_);
    EXPECT_EQ(cut.loss, reference.loss);
    EXPECT_TRUE(equal_bits(cut.gradients, reference.gradients)) << cuts.size() - 1 << " stages";
  }
}

TEST_P(EveryModel, HasTheSameBitsWhenItRecomputes) {
  const PassResult reference = run_two(config_, {0, 2, 5}, accumulation_);
  config_.recompute = true;
  const PassResult recomputed = run_two(config_, {0, 2, 5}, accumulation_);
  EXPECT_EQ(recomputed.loss, reference.loss);
  EXPECT_TRUE(equal_bits(recomputed.gradients, reference.gradients));
}

// What an update may do between the halves, or other minibatches, changes nothing: only the order within each half
// counts.
TEST_P(EveryModel, HasTheSameBitsWhereverTheSecondHalfOfABackwardRuns) {
  for (const bool recompute : {false, true}) {
    config_.recompute = recompute;
    const PassResult reference = run_two(config_, {0, 2, 5}, accumulation_);
    const RandomSamples data(config_);
    CutModel model(config_, {0, 2, 5}, accumulation_, data);
    model.forward(Position{3});
    model.forward(Position{4});
    model.backward_input(Position{3});
    model.backward_input(Position{4});
    model.scale_weights(2);
    model.forward(Position{5});
    model.backward_weights(Position{3});
    model.backward_weights(Position{4});
    EXPECT_TRUE(equal_bits(model.gradients(), reference.gradients));
    EXPECT_FALSE(model.take_overflow(0));
  }
}

// Floats remember the order, so that the test above can fail.
TEST(TorchStage, HasOtherBitsIfTheSecondHalvesSwap) {
  const ModelConfig config = small_gpt();
  const RandomSamples data(config);
  const auto gradients_of = [&](const std::vector<int>& order) {
    CutModel model(config, whole(config), Accumulation::kFloat, data);
    for (int i = 0; i < 3; ++i) model.forward(Position{i});
    for (int i = 0; i < 3; ++i) model.backward_input(Position{i});
    for (const int i : order) model.backward_weights(Position{i});
    return model.gradients();
  };
  EXPECT_FALSE(equal_bits(gradients_of({0, 1, 2}), gradients_of({2, 1, 0})));
}

TEST_P(EveryModel, AddsToTheBufferOfTheWindowAlone) {
  const RandomSamples data(config_);
  CutModel model(config_, {0, 3, 5}, accumulation_, data);
  model.forward(Position{0});
  model.backward(Position{0}, 1);
  EXPECT_FALSE(any_nonzero(model.gradients(0)));
  EXPECT_TRUE(any_nonzero(model.gradients(1)));
}

TEST_P(EveryModel, UsesTheWeightsOfTheBackwardForTheBackward) {
  const RandomSamples data(config_);
  CutModel same(config_, whole(config_), accumulation_, data);
  CutModel newer(config_, whole(config_), accumulation_, data);
  const double loss = same.forward(Position{0});
  EXPECT_EQ(loss, newer.forward(Position{0}));
  newer.scale_weights(2);
  same.backward(Position{0});
  newer.backward(Position{0});
  EXPECT_FALSE(equal_bits(same.gradients(), newer.gradients()));
  // The head's own weights do not enter the gradient of its decoder, the last parameter but for next-sentence's.
  const std::size_t decoder = same.gradients().size() - (config_.next_sentence ? 5 : 1);
  EXPECT_TRUE(at::equal(same.gradients()[decoder], newer.gradients()[decoder]));
}

TEST_P(EveryModel, EvaluatesWithoutDropoutAndKeepsNothing) {
  const RandomSamples data(config_);
  CutModel model(config_, {0, 2, 5}, accumulation_, data);
  const double loss = model.evaluate(2);
  EXPECT_EQ(model.evaluate(2), loss);
  EXPECT_FALSE(any_nonzero(model.gradients()));
  config_.dropout = 0;
  EXPECT_EQ(CutModel(config_, whole(config_), accumulation_, data).evaluate(2), loss);
}

INSTANTIATE_TEST_SUITE_P(TorchStage, EveryModel,
                         testing::Combine(testing::Bool(), testing::Values(Precision::kFp32, Precision::kBf16),
                                          testing::Values(Accumulation::kFloat, Accumulation::kFixedPoint)),
                         [](const auto& model) {
                           return std::string(std::get<0>(model.param) ? "Bert" : "Gpt") +
                                  (std::get<1>(model.param) == Precision::kBf16 ? "Bf16" : "Fp32") +
                                  (std::get<2>(model.param) == Accumulation::kFixedPoint ? "FixedPoint" : "Float");
                         });

TEST(TorchStage, GivesEqualFixedPointSumsInEveryOrderOfMinibatches) {
  const ModelConfig config = small_gpt();
  const RandomSamples data(config);
  CutModel forwards(config, whole(config), Accumulation::kFixedPoint, data);
  CutModel backwards(config, whole(config), Accumulation::kFixedPoint, data);
  for (int i = 0; i < 4; ++i) {
    forwards.forward(Position{i});
    forwards.backward(Position{i});
    backwards.forward(Position{3 - i});
    backwards.backward(Position{3 - i});
  }
  EXPECT_TRUE(equal_bits(forwards.gradients(), backwards.gradients()));
}

TEST(TorchStage, SumsTheSameInFloatAndInFixedPoint) {
  const ModelConfig config = small_bert();
  const Tensors floats = run_two(config, whole(config), Accumulation::kFloat).gradients;
  const Tensors integers = run_two(config, whole(config), Accumulation::kFixedPoint).gradients;
  for (std::size_t i = 0; i < floats.size(); ++i) {
    EXPECT_TRUE(at::allclose(integers[i].to(at::kDouble).div(kFixedPointScale), floats[i].to(at::kDouble), 1e-4, 1e-8));
  }
}

// Found by users: a gradient of 8 or more was called not finite.
TEST(TorchStage, SumsLargeGradientsInFixedPointAsInFloat) {
  const ModelConfig config = small_gpt();
  const RandomSamples data(config);
  const auto gradients_of = [&](Accumulation accumulation, double scale) {
    CutModel model(config, whole(config), accumulation, data);
    model.forward(Position{0});
    model.scale_weights(scale);
    model.backward(Position{0});
    EXPECT_FALSE(model.take_overflow(0));
    return model.gradients();
  };
  const auto largest = [](const Tensors& gradients) {
    double found = 0;
    for (const at::Tensor& one : gradients) found = std::max(found, one.abs().max().item<double>());
    return found;
  };
  double scale = 1;
  while (largest(gradients_of(Accumulation::kFloat, scale)) < 8) scale *= 1.05;
  const Tensors floats = gradients_of(Accumulation::kFloat, scale);
  ASSERT_LT(largest(floats), kFixedPointRange / 100);
  const Tensors integers = gradients_of(Accumulation::kFixedPoint, scale);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    EXPECT_TRUE(at::allclose(integers[i].to(at::kDouble).div(kFixedPointScale), floats[i].to(at::kDouble), 1e-4, 1e-8));
  }
}

TEST(TorchStage, ReportsAGradientThatFixedPointCannotHold) {
  const ModelConfig config = small_gpt();
  const RandomSamples data(config);
  CutModel model(config, {0, 2, 5}, Accumulation::kFixedPoint, data);
  model.forward(Position{0});
  model.scale_weights(1e20);
  model.backward(Position{0}, 1);
  EXPECT_FALSE(model.take_overflow(0));
  EXPECT_TRUE(model.take_overflow(1));
  EXPECT_FALSE(model.take_overflow(1));
}

// The decoder's gradient is added in the first half, and told with the second: of the minibatch that it belongs to.
TEST(TorchStage, TellsOfAnOverflowWithTheSecondHalfOfItsMinibatch) {
  ModelConfig config = small_gpt();
  const RandomSamples data(config);
  for (const bool recompute : {false, true}) {
    config.recompute = recompute;
    CutModel model(config, whole(config), Accumulation::kFixedPoint, data);
    model.forward(Position{0});
    model.scale_weights(1e20);
    model.forward(Position{1});
    model.scale_weights(1e-20);
    model.backward_input(Position{0});
    model.backward_input(Position{1});
    EXPECT_FALSE(model.take_overflow(0));
    model.backward_weights(Position{0});
    EXPECT_FALSE(model.take_overflow(0));
    model.backward_weights(Position{1});
    EXPECT_TRUE(model.take_overflow(0));
    EXPECT_FALSE(model.take_overflow(0));
  }
}

TEST(TorchStage, StartsTheTiedCopiesEqual) {
  for (const ModelConfig& config : {small_gpt(), small_bert()}) {
    const RandomSamples data(config);
    const Tensors weights = CutModel(config, whole(config), Accumulation::kFloat, data).weights();
    const StageLayout layout = layout_of(config, 0, config.blocks());
    std::vector<at::Tensor> tied;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (layout.entries[i].parameter.tied) tied.push_back(weights[i]);
    }
    ASSERT_EQ(tied.size(), 2U);
    EXPECT_TRUE(at::equal(tied[0], tied[1]));
  }
}

TEST(TorchStage, StartsWithTheDeviationsOfTheModel) {
  ModelConfig config = small_gpt();
  config.shape.hidden = 256;
  for (int block = 0; block < config.blocks(); ++block) {
    int index = 0;
    for (const ParameterSpec& parameter : parameters_of(config, block)) {
      const at::Tensor value = initial_value(config, block, index++, parameter);
      if (parameter.init != ParameterSpec::Init::kNormal || value.numel() < 10'000) continue;
      EXPECT_NEAR(value.std().item<double>() / parameter.deviation, 1.0, 0.02) << parameter.name;
      EXPECT_NEAR(value.mean().item<double>() / parameter.deviation, 0.0, 0.04) << parameter.name;
    }
  }
}

// Minibatches that something is wrong with.
class ChangedSamples final : public DataSource {
 public:
  ChangedSamples(const ModelConfig& model, std::function<void(Minibatch&)> change)
      : samples_(model), change_(std::move(change)) {}
  Result<Minibatch> training(Position position) const override {
    Minibatch batch = samples_.training(position).value();
    change_(batch);
    return batch;
  }
  Result<Minibatch> validation(std::int64_t index) const override { return training(Position{index}); }
  std::int64_t validation_minibatches() const override { return 1; }

 private:
  RandomSamples samples_;
  std::function<void(Minibatch&)> change_;
};

Error error_of_forward(const std::function<void(Minibatch&)>& change) {
  const ModelConfig config = small_gpt();
  const ChangedSamples data(config, change);
  StageRequest request{config, layout_of(config, 0, 1), {}, Accumulation::kFloat, 1, &data};
  const auto bytes = static_cast<std::size_t>(request.layout.elements) * 4;
  request.memory = {allocate_zeroed(bytes), {allocate_zeroed(bytes), allocate_zeroed(bytes)}};
  return make_torch_stage(request)->forward(Position{5}, {}).error();
}

TEST(TorchStage, ReturnsAnErrorWhereLibTorchThrows) {
  const Error error = error_of_forward([](Minibatch& batch) { batch.tokens[0] = 1'000'000; });
  EXPECT_EQ(error.code, ErrorCode::kInternal);
  EXPECT_NE(error.message.find("minibatch 5 failed in LibTorch"), std::string::npos) << error;
}

TEST(TorchStage, SaysWhatToDoWhereADeviceRunsOutOfMemory) {
  const Error error = error_of_forward([](Minibatch&) { C10_THROW_ERROR(OutOfMemoryError, "tried to allocate much"); });
  EXPECT_NE(error.message.find("minibatch 5 ran out of memory: tried to allocate much"), std::string::npos) << error;
  EXPECT_NE(error.hint.find("smaller minibatch"), std::string::npos) << error;
}

}  // namespace
}  // namespace everstep::trainer
