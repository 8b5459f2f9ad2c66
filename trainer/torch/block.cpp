#include "trainer/torch/block.h"

#include <algorithm>
#include <limits>

#include "trainer/torch/blocks.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;

at::Tensor integers(const std::vector<std::int64_t>& values, at::IntArrayRef shape) {
  return at::tensor(values, at::kLong).view(shape);
}

at::Tensor attention_mask(const Minibatch& minibatch, const ModelConfig& config) {
  const auto padded = [&](std::int32_t used) { return used < minibatch.length; };
  if (std::none_of(minibatch.used.begin(), minibatch.used.end(), padded)) return {};
  at::Tensor mask = at::zeros({minibatch.sequences, 1, 1, minibatch.length}, scalar_type(config));
  for (int row = 0; row < minibatch.sequences; ++row) {
    mask.select(0, row).slice(2, minibatch.used[row]).fill_(-std::numeric_limits<float>::infinity());
  }
  return mask;
}

std::unique_ptr<Block> make_block(const ModelConfig& config, int block) {
  const bool gpt = config.shape.family == ModelFamily::kGpt;
  if (block == 0) return gpt ? make_gpt_embedding() : make_bert_embedding();
  if (block == config.blocks() - 1) return gpt ? make_gpt_head() : make_bert_head(config.next_sentence);
  return gpt ? make_gpt_block() : make_bert_block();
}

}  // namespace

BatchTensors to_tensors(const Minibatch& minibatch, const ModelConfig& config) {
  BatchTensors batch;
  const std::int64_t rows = minibatch.sequences;
  batch.tokens = integers(minibatch.tokens, {rows, minibatch.length});
  batch.labels = integers(minibatch.labels, {-1});
  if (config.shape.family == ModelFamily::kGpt) return batch;
  batch.segments = integers(minibatch.segments, {rows, minibatch.length});
  batch.attention_mask = attention_mask(minibatch, config);
  if (config.next_sentence) batch.follows = integers(minibatch.follows, {rows});
  return batch;
}

std::vector<std::unique_ptr<Block>> make_blocks(const ModelConfig& config, int first_block, int end_block) {
  std::vector<std::unique_ptr<Block>> blocks;
  for (int block = first_block; block < end_block; ++block) blocks.push_back(make_block(config, block));
  return blocks;
}

}  // namespace everstep::trainer
