#include "trainer/model/model_config.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/model/data_source.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using Init = ParameterSpec::Init;

// The share of a BERT sample's tokens that are to be predicted.
constexpr std::int64_t kLayoutAlignment = 16;

ParameterSpec matrix(std::string name, std::int64_t rows, std::int64_t columns, double deviation = 0.02) {
  return {std::move(name), {rows, columns}, Init::kNormal, deviation, true, false};
}

ParameterSpec tied_embedding(std::string name, const scheduler::ModelShape& shape) {
  ParameterSpec parameter = matrix(std::move(name), shape.vocabulary, shape.hidden);
  parameter.tied = true;
  return parameter;
}

ParameterSpec bias(std::string name, std::int64_t size) {
  return {std::move(name), {size}, Init::kZero, 0, false, false};
}

class Parameters {
 public:
  explicit Parameters(std::string prefix) : prefix_(std::move(prefix)) {}

  // As torch.nn.Linear stores it: one row per output.
  Parameters& linear(const std::string& name, std::int64_t in, std::int64_t out) {
    list_.push_back(matrix(prefix_ + name + ".weight", out, in));
    list_.push_back(bias(prefix_ + name + ".bias", out));
    return *this;
  }

  // As GPT-2 stores it: one row per input.
  Parameters& conv1d(const std::string& name, std::int64_t in, std::int64_t out, double deviation = 0.02) {
    list_.push_back(matrix(prefix_ + name + ".weight", in, out, deviation));
    list_.push_back(bias(prefix_ + name + ".bias", out));
    return *this;
  }

  Parameters& norm(const std::string& name, std::int64_t size) {
    list_.push_back({prefix_ + name + ".weight", {size}, Init::kOne, 0, false, false});
    list_.push_back(bias(prefix_ + name + ".bias", size));
    return *this;
  }

  Parameters& add(ParameterSpec parameter) {
    parameter.name = prefix_ + parameter.name;
    list_.push_back(std::move(parameter));
    return *this;
  }

  std::vector<ParameterSpec> take() { return std::move(list_); }

 private:
  std::string prefix_;
  std::vector<ParameterSpec> list_;
};

std::vector<ParameterSpec> gpt_parameters(const ModelConfig& config, int block) {
  const scheduler::ModelShape& shape = config.shape;
  const std::int64_t hidden = shape.hidden;
  if (block == 0) {
    return Parameters("transformer.")
        .add(tied_embedding("wte.weight", shape))
        .add(matrix("wpe.weight", shape.sequence, hidden))
        .take();
  }
  if (block == shape.layers + 1) {
    return Parameters("").norm("transformer.ln_f", hidden).add(tied_embedding("lm_head.weight", shape)).take();
  }
  // 2 · layers branches are added to the residual stream: keeps its size at the start independent of the depth.
  const double residual_deviation = 0.02 / std::sqrt(2.0 * shape.layers);
  return Parameters("transformer.h." + std::to_string(block - 1) + ".")
      .norm("ln_1", hidden)
      .conv1d("attn.c_attn", hidden, 3 * hidden)
      .conv1d("attn.c_proj", hidden, hidden, residual_deviation)
      .norm("ln_2", hidden)
      .conv1d("mlp.c_fc", hidden, 4 * hidden)
      .conv1d("mlp.c_proj", 4 * hidden, hidden, residual_deviation)
      .take();
}

std::vector<ParameterSpec> bert_head_parameters(const ModelConfig& config) {
  const std::int64_t hidden = config.shape.hidden;
  Parameters head("");
  head.add(bias("cls.predictions.bias", config.shape.vocabulary))
      .linear("cls.predictions.transform.dense", hidden, hidden)
      .norm("cls.predictions.transform.LayerNorm", hidden)
      .add(tied_embedding("cls.predictions.decoder.weight", config.shape));
  if (config.next_sentence) head.linear("bert.pooler.dense", hidden, hidden).linear("cls.seq_relationship", hidden, 2);
  return head.take();
}

std::vector<ParameterSpec> bert_parameters(const ModelConfig& config, int block) {
  const scheduler::ModelShape& shape = config.shape;
  const std::int64_t hidden = shape.hidden;
  if (block == 0) {
    return Parameters("bert.embeddings.")
        .add(tied_embedding("word_embeddings.weight", shape))
        .add(matrix("position_embeddings.weight", shape.sequence, hidden))
        .add(matrix("token_type_embeddings.weight", 2, hidden))
        .norm("LayerNorm", hidden)
        .take();
  }
  if (block == shape.layers + 1) return bert_head_parameters(config);
  return Parameters("bert.encoder.layer." + std::to_string(block - 1) + ".")
      .linear("attention.self.query", hidden, hidden)
      .linear("attention.self.key", hidden, hidden)
      .linear("attention.self.value", hidden, hidden)
      .linear("attention.output.dense", hidden, hidden)
      .norm("attention.output.LayerNorm", hidden)
      .linear("intermediate.dense", hidden, 4 * hidden)
      .linear("output.dense", 4 * hidden, hidden)
      .norm("output.LayerNorm", hidden)
      .take();
}

// What a transformer block keeps per token and hidden unit: its input, both norms' other side, queries, keys, values,
// the attention's output, one more residual sum, and 4 for the feed-forward's hidden layer before GELU. BERT keeps that
// layer after GELU too.
std::int64_t layer_activation_bytes(const ModelConfig& config) {
  const auto value_bytes = static_cast<std::int64_t>(config.weight_bytes());
  const std::int64_t numbers = config.shape.family == ModelFamily::kGpt ? 12 : 16;
  const std::int64_t norm_statistics = 4 * value_bytes;
  const std::int64_t attention_statistics = config.shape.heads * std::int64_t{4};
  return config.tokens_per_minibatch() *
         (numbers * config.shape.hidden * value_bytes + norm_statistics + attention_statistics);
}

// The log probabilities stay in fp32. BERT's head computes them where something is to be predicted only.
std::int64_t head_activation_bytes(const ModelConfig& config) {
  const auto value_bytes = static_cast<std::int64_t>(config.weight_bytes());
  const std::int64_t hidden = config.shape.hidden;
  const std::int64_t predicted_bytes = config.shape.vocabulary * std::int64_t{4} + 2 * value_bytes;
  if (config.shape.family == ModelFamily::kGpt) {
    return config.tokens_per_minibatch() * (predicted_bytes + 2 * hidden * value_bytes);
  }
  const double predicted = kHiddenFraction * static_cast<double>(config.tokens_per_minibatch());
  const std::int64_t next_sentence = config.next_sentence ? config.minibatch * (2 * hidden * value_bytes + 8) : 0;
  return std::llround(predicted * static_cast<double>(predicted_bytes + 4 * hidden * value_bytes + 8)) + next_sentence;
}

// BERT's embedding ends in a norm, GPT's keeps nothing but the tokens.
std::int64_t embedding_activation_bytes(const ModelConfig& config) {
  const auto value_bytes = static_cast<std::int64_t>(config.weight_bytes());
  const bool keeps_norm = config.shape.family == ModelFamily::kBert && !config.recompute;
  const std::int64_t norm_bytes = keeps_norm ? (config.shape.hidden + 2) * value_bytes : 0;
  return config.tokens_per_minibatch() * (norm_bytes + 8);
}

std::int64_t activation_bytes(const ModelConfig& config, int block) {
  const bool head = block == config.shape.layers + 1;
  if (block == 0) return embedding_activation_bytes(config);
  const std::int64_t labels = head ? config.tokens_per_minibatch() * std::int64_t{8} : 0;
  if (config.recompute) return static_cast<std::int64_t>(config.boundary_bytes()) + labels;
  return (head ? head_activation_bytes(config) : layer_activation_bytes(config)) + labels;
}

// Of a weight's gradient before it is added to its sum; fp32 is added without.
std::int64_t product_bytes(const ModelConfig& config, Accumulation accumulation, std::int64_t elements) {
  const std::int64_t rounded = config.precision == Precision::kBf16 ? 2 : 0;
  return elements * (rounded + (accumulation == Accumulation::kFixedPoint ? 4 : 0));
}

// A backward's gradients of what the block keeps, and with recomputation what it keeps itself. GPT's backward computes
// GELU anew.
std::int64_t layer_working_bytes(const ModelConfig& config, Accumulation accumulation) {
  const auto boundary = static_cast<std::int64_t>(config.boundary_bytes());
  const std::int64_t hidden = config.shape.hidden;
  const std::int64_t gradients = (config.shape.family == ModelFamily::kGpt ? 16 : 11) * boundary;
  const std::int64_t kept = config.recompute ? layer_activation_bytes(config) - boundary : 0;
  return gradients + product_bytes(config, accumulation, 4 * hidden * hidden) + kept;
}

// Scores in the model's precision and in fp32, there and back.
std::int64_t head_working_bytes(const ModelConfig& config, Accumulation accumulation) {
  const std::int64_t vocabulary = config.shape.vocabulary;
  const double predicted = config.shape.family == ModelFamily::kGpt ? 1.0 : kHiddenFraction;
  const auto scores = std::llround(predicted * static_cast<double>(config.tokens_per_minibatch() * vocabulary));
  const std::int64_t rounded = config.precision == Precision::kBf16 ? 2 * scores : 0;
  const std::int64_t product = product_bytes(config, accumulation, vocabulary * config.shape.hidden);
  const std::int64_t kept =
      config.recompute ? head_activation_bytes(config) - static_cast<std::int64_t>(config.boundary_bytes()) : 0;
  const std::int64_t all_scores = 4 * scores + rounded;
  const std::int64_t scores_with_product = (rounded > 0 ? rounded : 4 * scores) + product;
  return std::max(all_scores, scores_with_product) + std::max<std::int64_t>(kept, 0);
}

std::int64_t working_bytes(const ModelConfig& config, Accumulation accumulation, int block) {
  // Inputs that were asked for ahead of their op (trainer/loop/input_queue.cpp), and an output on its way.
  constexpr std::int64_t kBoundaries = 5;
  const auto boundary = static_cast<std::int64_t>(config.boundary_bytes());
  const std::int64_t in_floats = config.tokens_per_minibatch() * config.shape.hidden * std::int64_t{4};
  std::int64_t bytes = 2 * boundary + 2 * in_floats;  // of the embedding
  if (block > 0) bytes = layer_working_bytes(config, accumulation);
  if (block == config.shape.layers + 1) bytes = head_working_bytes(config, accumulation);
  return bytes + kBoundaries * boundary;
}

Status in_range(const std::string& what, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return invalid_argument("model: " + what + " is " + std::to_string(value) + ", must be between " +
                          std::to_string(least) + " and " + std::to_string(most));
}

}  // namespace

Status check(const ModelConfig& config) {
  constexpr std::int64_t kMostUnits = 1 << 20;
  const scheduler::ModelShape& shape = config.shape;
  EVERSTEP_TRY(in_range("layers", shape.layers, 1, 998));
  EVERSTEP_TRY(in_range("hidden", shape.hidden, 1, kMostUnits));
  EVERSTEP_TRY(in_range("heads", shape.heads, 1, shape.hidden));
  EVERSTEP_TRY(in_range("sequence", shape.sequence, 1, kMostUnits));
  EVERSTEP_TRY(in_range("vocabulary", shape.vocabulary, 2, std::int64_t{1} << 24));
  EVERSTEP_TRY(in_range("minibatch", config.minibatch, 1, kMostUnits));
  if (shape.hidden % shape.heads != 0) {
    return invalid_argument("model: hidden " + std::to_string(shape.hidden) + " is not a multiple of heads " +
                            std::to_string(shape.heads));
  }
  if (!(config.dropout >= 0 && config.dropout < 1)) {
    return invalid_argument("model: dropout is " + std::to_string(config.dropout) + ", must be in [0, 1)");
  }
  if (config.next_sentence && shape.family != ModelFamily::kBert) {
    return invalid_argument("model: only BERT has a next-sentence head", "leave it out, or choose a BERT");
  }
  return {};
}

std::int64_t ParameterSpec::elements() const {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<ParameterSpec> parameters_of(const ModelConfig& config, int block) {
  EVERSTEP_CHECK(block >= 0 && block < config.blocks(), "no block " + std::to_string(block));
  return config.shape.family == ModelFamily::kGpt ? gpt_parameters(config, block) : bert_parameters(config, block);
}

const StageLayout::Entry* StageLayout::tied() const {
  for (const Entry& entry : entries) {
    if (entry.parameter.tied) return &entry;
  }
  return nullptr;
}

StageLayout layout_of(const ModelConfig& config, int first_block, int end_block) {
  StageLayout layout{first_block, end_block, {}, 0};
  for (int block = first_block; block < end_block; ++block) {
    int index = 0;
    for (ParameterSpec& parameter : parameters_of(config, block)) {
      const std::int64_t elements = parameter.elements();
      layout.entries.push_back({block, index++, std::move(parameter), layout.elements});
      layout.elements += (elements + kLayoutAlignment - 1) / kLayoutAlignment * kLayoutAlignment;
    }
  }
  return layout;
}

scheduler::ModelProfile profile_of(const ModelConfig& config, Accumulation accumulation, double flops_per_second) {
  scheduler::ProfileOptions options;
  options.minibatch = config.minibatch;
  options.flops_per_second = flops_per_second;
  options.backward_ratio = config.recompute ? 3.0 : 2.0;
  options.bytes_per_activation = static_cast<std::int64_t>(config.weight_bytes());
  scheduler::ModelProfile profile = scheduler::estimate_profile(config.shape, options);

  for (int block = 0; block < config.blocks(); ++block) {
    scheduler::BlockProfile& profiled = profile.blocks[static_cast<std::size_t>(block)];
    profiled.activation_bytes = activation_bytes(config, block);
    // What was recomputed for a backward is there for both of its halves at once.
    if (config.recompute) profiled.weights = 0;
    profiled.working_bytes = working_bytes(config, accumulation, block);
    profiled.parameters = 0;
    for (const ParameterSpec& parameter : parameters_of(config, block)) profiled.parameters += parameter.elements();
  }
  profile.weight_bytes = static_cast<std::int64_t>(config.weight_bytes());
  profile.gradient_bytes = accumulation == Accumulation::kFixedPoint ? 8 : 4;
  profile.optimizer_bytes = config.precision == Precision::kBf16 ? 12 : 8;  // two moments, and bf16's master
  return profile;
}

}  // namespace everstep::trainer
