#include "trainer/torch/block.h"

#include <set>
#include <string>
#include <tuple>

#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "tests/trainer/torch/reference_blocks.h"
#include "tests/trainer/torch/test_model.h"
#include "trainer/torch/torch_stage.h"

namespace everstep::trainer {
namespace {

// Keeps each parameter's gradient apart, and counts.
class CollectingSink final : public GradientSink {
 public:
  explicit CollectingSink(const Tensors& weights) : weights_(weights), gradients(weights.size()) {
    counts.resize(weights.size());
  }

  void add(int parameter, const at::Tensor& gradient) override {
    ++counts[parameter];
    gradients[parameter] = gradient.to(at::kDouble);
  }
  void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) override {
    add(parameter, left.mm(right));
  }
  void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) override {
    add(parameter, at::zeros_like(weights_[parameter], at::kDouble).index_add(0, index, rows.to(at::kDouble)));
  }

 private:
  Tensors weights_;

 public:
  Tensors gradients;
  std::vector<int> counts;
};

at::Tensor noise(const ModelConfig& config, std::vector<std::int64_t> shape, int index) {
  return initial_value(config, 0, index, {"noise", std::move(shape), ParameterSpec::Init::kNormal, 1.0, true, false})
      .to(scalar_type(config));
}

// A whole backward: the gradient of the input, and all others in the sink.
at::Tensor both_halves(const Block& block, const Tensors& weights, const Tensors& saved,
                       const at::Tensor& output_gradient, const BlockCall& call, GradientSink& sink) {
  OwedGradients owed;
  at::Tensor input_gradient = block.backward(weights, saved, output_gradient, call, sink, owed);
  add_owed(owed, sink);
  return input_gradient;
}

double relative_error(const at::Tensor& actual, const at::Tensor& expected) {
  const double scale = std::max(1e-12, expected.abs().max().item<double>());
  return (actual.to(at::kDouble) - expected).abs().max().item<double>() / scale;
}

struct Case {
  bool bert = false;
  int block = 0;
  double dropout = 0;
  bool padded = false;
  Precision precision = Precision::kFp32;
};

std::string case_name(const testing::TestParamInfo<Case>& tested) {
  const Case& c = tested.param;
  return std::string(c.bert ? "Bert" : "Gpt") + "Block" + std::to_string(c.block) + (c.dropout > 0 ? "Dropout" : "") +
         (c.padded ? "Padded" : "") + (c.precision == Precision::kBf16 ? "Bf16" : "");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const bool bert : {false, true}) {
    for (const int block : {0, 2, 4}) {
      for (const double dropout : {0.0, 0.3}) {
        for (const bool padded : {false, true}) {
          if (padded && !bert) continue;
          cases.push_back({bert, block, dropout, padded, Precision::kFp32});
          cases.push_back({bert, block, dropout, padded, Precision::kBf16});
        }
      }
    }
  }
  return cases;
}

class EveryBlock : public testing::TestWithParam<Case> {
 protected:
  EveryBlock() {
    prepare_torch(1);
    config_ = GetParam().bert ? small_bert() : small_gpt();
    config_.next_sentence = GetParam().bert;
    config_.dropout = GetParam().dropout;
    config_.precision = GetParam().precision;
    batch_ = to_tensors(RandomSamples(config_, GetParam().padded).training(Position{8}).value(), config_);
    weights_ = noisy_weights(config_, GetParam().block);
    block_ = std::move(make_blocks(config_, GetParam().block, GetParam().block + 1)[0]);
    const std::vector<std::int64_t> shape{config_.tokens_per_minibatch(), config_.shape.hidden};
    if (GetParam().block > 0) input_ = noise(config_, shape, 0);
    if (!is_head()) output_gradient_ = noise(config_, shape, 1);
  }

  bool is_head() const { return GetParam().block == config_.blocks() - 1; }
  BlockCall call() const { return {config_, GetParam().block, batch_, Position{8}, true, kLossWeight}; }
  at::Tensor both_halves(const Tensors& saved, GradientSink& sink) const {
    return trainer::both_halves(*block_, weights_, saved, output_gradient_, call(), sink);
  }

  static constexpr double kLossWeight = 0.25;

  ModelConfig config_;
  BatchTensors batch_;
  Tensors weights_;
  std::unique_ptr<Block> block_;
  at::Tensor input_;
  at::Tensor output_gradient_;
};

TEST_P(EveryBlock, AgreesWithAutogradOnThePlainFormulas) {
  Tensors saved;
  const at::Tensor output = block_->forward(weights_, input_, call(), saved);
  CollectingSink sink(weights_);
  const at::Tensor input_gradient = both_halves(saved, sink);

  const c10::AutoGradMode record(true);
  Tensors leaves;
  for (const at::Tensor& weight : weights_) leaves.push_back(weight.to(at::kDouble).requires_grad_());
  const at::Tensor input = input_.defined() ? input_.to(at::kDouble).requires_grad_() : input_;
  const at::Tensor expected = reference_forward(leaves, input, call());
  expected.backward(is_head() ? at::scalar_tensor(kLossWeight, at::kDouble) : output_gradient_.to(at::kDouble));

  const double tolerance = config_.precision == Precision::kBf16 ? 0.04 : 1e-5;
  EXPECT_LT(relative_error(output, expected.detach()), tolerance);
  if (input.defined()) {
    EXPECT_LT(relative_error(input_gradient, input.grad()), tolerance);
  }
  const auto parameters = parameters_of(config_, GetParam().block);
  ASSERT_EQ(parameters.size(), weights_.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    EXPECT_EQ(sink.counts[i], 1) << parameters[i].name;
    // A key's bias moves all scores of a query alike: its gradient is nothing but rounding.
    if (parameters[i].name.ends_with("key.bias")) continue;
    EXPECT_LT(relative_error(sink.gradients[i], leaves[i].grad()), tolerance) << parameters[i].name;
  }
}

TEST_P(EveryBlock, IsAPureFunction) {
  Tensors saved;
  const at::Tensor first = block_->forward(weights_, input_, call(), saved);
  Tensors saved_again;
  EXPECT_TRUE(at::equal(first, block_->forward(weights_, input_, call(), saved_again)));
  CollectingSink sink(weights_);
  CollectingSink sink_again(weights_);
  const at::Tensor gradient = both_halves(saved, sink);
  const at::Tensor gradient_again = both_halves(saved, sink_again);
  if (gradient.defined()) {
    EXPECT_TRUE(at::equal(gradient, gradient_again));
  }
  for (std::size_t i = 0; i < weights_.size(); ++i) EXPECT_TRUE(at::equal(sink.gradients[i], sink_again.gradients[i]));
}

// So that nobody has to keep the scores, or their gradient, of the whole vocabulary until the second half.
TEST_P(EveryBlock, AddsTheDecodersGradientAloneInTheFirstHalf) {
  Tensors saved;
  block_->forward(weights_, input_, call(), saved);
  CollectingSink sink(weights_);
  OwedGradients owed;
  block_->backward(weights_, saved, output_gradient_, call(), sink, owed);
  const std::vector<ParameterSpec> parameters = parameters_of(config_, GetParam().block);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const bool has_vocabulary = parameters[i].shape.front() == config_.shape.vocabulary;
    EXPECT_EQ(sink.counts[i], is_head() && has_vocabulary ? 1 : 0) << parameters[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Block, EveryBlock, testing::ValuesIn(all_cases()), case_name);

// A finite difference at a few weights: independent of any rule of differentiation.
TEST(Block, GradientIsTheSlopeOfTheLoss) {
  for (ModelConfig config : {small_gpt(), small_bert()}) {
    const int block = config.blocks() - 1;
    const BatchTensors batch = to_tensors(RandomSamples(config).training(Position{1}).value(), config);
    const auto code = std::move(make_blocks(config, block, block + 1)[0]);
    const at::Tensor input = noise(config, {config.tokens_per_minibatch(), config.shape.hidden}, 0);
    const BlockCall call{config, block, batch, Position{1}, true};
    Tensors weights = noisy_weights(config, block);
    Tensors saved;
    code->forward(weights, input, call, saved);
    CollectingSink sink(weights);
    both_halves(*code, weights, saved, {}, call, sink);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const at::Tensor flat = weights[i].view({-1});
      const std::int64_t place = flat.numel() / 3;
      const auto loss_at = [&](double step) {
        const at::Tensor original = weights[i].clone();
        flat[place] += step;
        const double loss = code->forward(weights, input, call, saved).item<double>();
        weights[i].copy_(original);
        return loss;
      };
      const double slope = (loss_at(1e-2) - loss_at(-1e-2)) / 2e-2;
      EXPECT_NEAR(sink.gradients[i].view({-1})[place].item<double>(), slope, 1e-3) << "parameter " << i;
    }
  }
}

TEST(Block, HasNoLossAndNoGradientWithoutLabels) {
  for (ModelConfig config : {small_gpt(), small_bert()}) {
    const int block = config.blocks() - 1;
    BatchTensors batch = to_tensors(RandomSamples(config).training(Position{1}).value(), config);
    batch.labels.fill_(kIgnoredLabel);
    const auto code = std::move(make_blocks(config, block, block + 1)[0]);
    const at::Tensor input = noise(config, {config.tokens_per_minibatch(), config.shape.hidden}, 0);
    const BlockCall call{config, block, batch, Position{1}, true};
    const Tensors weights = noisy_weights(config, block);
    Tensors saved;
    EXPECT_EQ(code->forward(weights, input, call, saved).item<double>(), 0);
    CollectingSink sink(weights);
    EXPECT_FALSE(both_halves(*code, weights, saved, {}, call, sink).any().item<bool>());
    for (const at::Tensor& gradient : sink.gradients) EXPECT_FALSE(gradient.any().item<bool>());
  }
}

TEST(Block, GetsItsLookupsAndMaskedPlacesFromTheHost) {
  const ModelConfig config = small_bert();
  const Minibatch minibatch = RandomSamples(config).training(Position{1}).value();
  const BatchTensors batch = to_tensors(minibatch, config);
  for (const auto& [lookup, index] :
       {std::pair(batch.token_lookup, batch.tokens), {batch.segment_lookup, batch.segments}}) {
    const auto [distinct, place, counts] = at::_unique2(index.view(-1), true, true, false);
    EXPECT_TRUE(at::equal(lookup.distinct, distinct));
    EXPECT_TRUE(at::equal(lookup.place, place));
  }
  EXPECT_TRUE(at::equal(batch.masked, batch.labels.ne(kIgnoredLabel).nonzero().squeeze(1)));
  EXPECT_FALSE(to_tensors(minibatch, config, at::kCPU, false).token_lookup.distinct.defined());
}

TEST(Block, RefusesALabelThatIsNoClass) {
  const ModelConfig config = small_gpt();
  for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{config.shape.vocabulary}}) {
    Minibatch minibatch = RandomSamples(config).training(Position{1}).value();
    minibatch.labels[3] = label;
    EXPECT_THROW(to_tensors(minibatch, config), c10::Error);
  }
}

// Bytes of all that a model's blocks keep, memory that two of them share counted once.
std::int64_t kept_bytes(const ModelConfig& config) {
  const BatchTensors batch = to_tensors(RandomSamples(config, false).training(Position{0}).value(), config);
  std::vector<Tensors> kept;
  at::Tensor activation;
  for (int block = 0; block < config.blocks(); ++block) {
    const auto code = std::move(make_blocks(config, block, block + 1)[0]);
    Tensors saved;
    const at::Tensor input = activation;
    activation = code->forward(noisy_weights(config, block), input, {config, block, batch, Position{0}, true}, saved);
    kept.push_back(config.recompute ? Tensors{input} : saved);
  }
  kept.push_back({batch.tokens, batch.labels});
  std::set<const void*> counted;
  std::int64_t bytes = 0;
  for (const Tensors& tensors : kept) {
    for (const at::Tensor& tensor : tensors) {
      if (!tensor.defined() || !counted.insert(tensor.storage().data()).second) continue;
      bytes += static_cast<std::int64_t>(tensor.storage().nbytes());
    }
  }
  return bytes;
}

TEST(Block, KeepsWhatTheProfilePredicts) {
  for (ModelConfig config : {small_gpt(), small_bert()}) {
    config.minibatch = 4;
    config.dropout = 0.1;
    for (const bool next_sentence : {false, true}) {
      for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
        for (const bool recompute : {false, true}) {
          config.next_sentence = next_sentence && config.shape.family == scheduler::ModelFamily::kBert;
          config.precision = precision;
          config.recompute = recompute;
          std::int64_t predicted = 0;
          for (const auto& block : profile_of(config, Accumulation::kFloat, 1e9).blocks) {
            predicted += block.activation_bytes;
          }
          const auto kept = static_cast<double>(kept_bytes(config));
          EXPECT_NEAR(static_cast<double>(predicted) / kept, 1, 0.02)
              << config.blocks() << " recompute " << recompute << " bytes " << config.weight_bytes();
        }
      }
    }
  }
}

}  // namespace
}  // namespace everstep::trainer
