#pragma once

#include <vector>

#include "trainer/model/data_source.h"
#include "trainer/model/stage_compute.h"
#include "trainer/torch/block.h"

namespace everstep::trainer {

// Small models in which every size differs from every other, so that a transposed one shows.
ModelConfig small_gpt();
ModelConfig small_bert();

// Random samples as a pure function of the position. BERT's have padding in some rows, segments, and about 15 % labels.
class RandomSamples final : public DataSource {
 public:
  explicit RandomSamples(const ModelConfig& config, bool padded = true) : config_(config), padded_(padded) {}

  Result<Minibatch> training(Position position) const override { return sample(position.value); }
  Result<Minibatch> validation(std::int64_t index) const override { return sample(1'000'000 + index); }
  std::int64_t validation_minibatches() const override { return 4; }

 private:
  Minibatch sample(std::int64_t number) const;

  ModelConfig config_;
  bool padded_;
};

// Initial values, and noise on those that start at 0 or 1 so that every term of a gradient shows.
Tensors noisy_weights(const ModelConfig& config, int block);

// A model cut into stages [cuts[i], cuts[i + 1]) that are all in this process.
class CutModel {
 public:
  CutModel(const ModelConfig& config, std::vector<int> cuts, Accumulation accumulation, const DataSource& data,
           std::int64_t window = 4);

  double forward(Position position);
  void backward(Position position, int parity = 0);  // both halves
  void backward_input(Position position, int parity = 0);
  void backward_weights(Position position, int parity = 0);
  double evaluate(std::int64_t index);

  // Copies of all parameters' gradients (or weights), in the order of the blocks; no gaps.
  Tensors gradients(int parity = 0) const;
  Tensors weights() const;
  bool take_overflow(int parity);
  void scale_weights(double factor);

 private:
  struct Stage {
    StageRequest request;
    std::unique_ptr<StageCompute> compute;
  };

  std::vector<Stage> stages_;
};

}  // namespace everstep::trainer
