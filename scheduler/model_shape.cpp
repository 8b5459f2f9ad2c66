#include "scheduler/model_shape.h"

#include <algorithm>

namespace everstep::scheduler {
namespace {

Tick compute_time(double operations, double flops_per_second) {
  return std::max<Tick>(1, ticks_of(operations / flops_per_second));
}

}  // namespace

const std::vector<ModelShape>& named_models() {
  static const std::vector<ModelShape> models{
      {"gpt2-tiny", ModelFamily::kGpt, 8, 256, 4, 128, 256},
      {"gpt2-small", ModelFamily::kGpt, 12, 768, 12, 1024, 50257},
      {"gpt2-medium", ModelFamily::kGpt, 24, 1024, 16, 1024, 50257},
      {"gpt2-large", ModelFamily::kGpt, 36, 1280, 20, 1024, 50257},
      {"gpt2-xl", ModelFamily::kGpt, 48, 1600, 25, 1024, 50257},
      {"gpt-1.56b", ModelFamily::kGpt, 48, 1600, 25, 1024, 50257},
      {"bert-tiny", ModelFamily::kBert, 2, 128, 2, 128, 30522},
      {"bert-base", ModelFamily::kBert, 12, 768, 12, 512, 30522},
      {"bert-large", ModelFamily::kBert, 24, 1024, 16, 512, 30522},
      {"bert-1.04b", ModelFamily::kBert, 32, 1600, 32, 1024, 30522},
  };
  return models;
}

Result<ModelShape> find_model(std::string_view name) {
  std::string known;
  for (const ModelShape& model : named_models()) {
    if (model.name == name) return model;
    known += (known.empty() ? "" : ", ") + model.name;
  }
  return not_found("unknown model '" + std::string(name) + "'", "one of " + known);
}

ModelProfile estimate_profile(const ModelShape& shape, const ProfileOptions& options) {
  const auto hidden = static_cast<std::int64_t>(shape.hidden);
  const auto vocabulary = static_cast<std::int64_t>(shape.vocabulary);
  const std::int64_t tokens = std::int64_t{options.minibatch} * shape.sequence;
  const std::int64_t output_bytes = tokens * hidden * options.bytes_per_activation;
  const auto block = [&](std::string name, std::int64_t parameters, std::int64_t activation_bytes, double per_token,
                         double for_weights) {
    const double operations = per_token * static_cast<double>(tokens);
    const Tick forward = compute_time(operations, options.flops_per_second);
    const Tick backward = compute_time(operations * options.backward_ratio, options.flops_per_second);
    const Tick weights = ticks_of(for_weights * static_cast<double>(tokens) / options.flops_per_second);
    return BlockProfile{std::move(name), parameters, activation_bytes,           output_bytes,
                        forward,         backward,   std::min(weights, backward)};
  };
  const auto h = static_cast<double>(hidden);

  ModelProfile profile;
  profile.name = shape.name;
  profile.tokens_per_minibatch = tokens;
  // BERT adds segment embeddings and a norm to the embedding, and a dense layer with a norm before the decoder.
  const bool bert = shape.family == ModelFamily::kBert;
  const std::int64_t tables = (vocabulary + shape.sequence + (bert ? 2 : 0)) * hidden;
  profile.blocks.push_back(block("embedding", tables + (bert ? 2 * hidden : 0), output_bytes, 4 * h, 8 * h));
  const double layer_operations = 24 * h * h + 4 * static_cast<double>(shape.sequence) * h;
  for (int layer = 0; layer < shape.layers; ++layer) {
    const std::int64_t parameters = 12 * hidden * hidden + 13 * hidden;
    profile.blocks.push_back(
        block("block " + std::to_string(layer), parameters, 17 * output_bytes, layer_operations, 24 * h * h));
  }
  // The head keeps its own copy of the token embedding; the two are summed at their owners (tied weights). Its logits
  // stay in memory, in full precision, until the backward. The gradient of its weights is computed at once, else the
  // gradient of the logits would have to wait with it.
  const std::int64_t transform = bert ? hidden * hidden + 3 * hidden + vocabulary : 2 * hidden;
  profile.blocks.push_back(block("head", vocabulary * hidden + transform, tokens * vocabulary * 4,
                                 2 * h * static_cast<double>(vocabulary) + (bert ? 2 * h * h : 0), 0));
  return profile;
}

}  // namespace everstep::scheduler
