#include "trainer/torch/block.h"

#include <algorithm>
#include <limits>

#include "trainer/torch/blocks.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;

// Moves what was made on the host to the device of the weights, without waiting.
class Uploads {
 public:
  explicit Uploads(c10::Device device) : device_(device) {}

  at::Tensor integers(const std::vector<std::int64_t>& values, at::IntArrayRef shape) const {
    if (device_.is_cpu()) return at::tensor(values, at::kLong).view(shape);
    const at::Tensor pinned = at::empty({std::ssize(values)}, at::TensorOptions(at::kLong).pinned_memory(true));
    std::copy(values.begin(), values.end(), pinned.mutable_data_ptr<std::int64_t>());
    return pinned.to(device_, true).view(shape);
  }

  at::Tensor attention_mask(const Minibatch& minibatch, at::ScalarType type) const {
    const auto padded = [&](std::int32_t used) { return used < minibatch.length; };
    if (std::none_of(minibatch.used.begin(), minibatch.used.end(), padded)) return {};
    at::Tensor mask = at::zeros({minibatch.sequences, 1, 1, minibatch.length}, type);
    for (int row = 0; row < minibatch.sequences; ++row) {
      mask.select(0, row).slice(2, minibatch.used[row]).fill_(-std::numeric_limits<float>::infinity());
    }
    return device_.is_cpu() ? mask : mask.pin_memory().to(device_, true);
  }

  Lookup lookup(const std::vector<std::int64_t>& index) const {
    std::vector<std::int64_t> distinct = index;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    std::vector<std::int64_t> place;
    place.reserve(index.size());
    for (const std::int64_t row : index) {
      place.push_back(std::lower_bound(distinct.begin(), distinct.end(), row) - distinct.begin());
    }
    return {integers(distinct, {-1}), integers(place, {-1})};
  }

 private:
  c10::Device device_;
};

void check_labels(const std::vector<std::int64_t>& labels, std::int64_t classes) {
  for (const std::int64_t label : labels) {
    TORCH_CHECK_INDEX(label == kIgnoredLabel || (label >= 0 && label < classes), "label ", label, " is not below ",
                      classes);
  }
}

std::vector<std::int64_t> labelled_places(const std::vector<std::int64_t>& labels) {
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] != kIgnoredLabel) places.push_back(static_cast<std::int64_t>(i));
  }
  return places;
}

std::unique_ptr<Block> make_block(const ModelConfig& config, int block) {
  const bool gpt = config.shape.family == ModelFamily::kGpt;
  if (block == 0) return gpt ? make_gpt_embedding() : make_bert_embedding();
  if (block == config.blocks() - 1) return gpt ? make_gpt_head() : make_bert_head(config.next_sentence);
  return gpt ? make_gpt_block() : make_bert_block();
}

}  // namespace

BatchTensors to_tensors(const Minibatch& minibatch, const ModelConfig& config, c10::Device device, bool with_lookups) {
  BatchTensors batch;
  const Uploads upload(device);
  const std::int64_t rows = minibatch.sequences;
  check_labels(minibatch.labels, config.shape.vocabulary);
  batch.tokens = upload.integers(minibatch.tokens, {rows, minibatch.length});
  batch.labels = upload.integers(minibatch.labels, {-1});
  if (with_lookups) batch.token_lookup = upload.lookup(minibatch.tokens);
  if (config.shape.family == ModelFamily::kGpt) return batch;
  batch.segments = upload.integers(minibatch.segments, {rows, minibatch.length});
  batch.attention_mask = upload.attention_mask(minibatch, scalar_type(config));
  batch.masked = upload.integers(labelled_places(minibatch.labels), {-1});
  if (with_lookups) batch.segment_lookup = upload.lookup(minibatch.segments);
  if (!config.next_sentence) return batch;
  check_labels(minibatch.follows, 2);
  batch.follows = upload.integers(minibatch.follows, {rows});
  return batch;
}

std::vector<std::unique_ptr<Block>> make_blocks(const ModelConfig& config, int first_block, int end_block) {
  std::vector<std::unique_ptr<Block>> blocks;
  for (int block = first_block; block < end_block; ++block) blocks.push_back(make_block(config, block));
  return blocks;
}

}  // namespace everstep::trainer
