#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/model_shape.h"
#include "scheduler/profile.h"

namespace everstep::trainer {

enum class Precision : std::uint8_t {
  kFp32,
  kBf16,  // weights, activations and their gradients; the owner keeps fp32 masters and moments
};

// How the gradients of a window's minibatches are summed.
enum class Accumulation : std::uint8_t {
  kFloat,       // fp32, in the order the schedule gives: equal bits for equal plans
  kFixedPoint,  // 64-bit integers: equal bits for every plan (`--reproducible`)
};

// Everything that decides what the model computes, and nothing about where.
struct ModelConfig {
  scheduler::ModelShape shape;
  double dropout = 0.1;        // of embeddings and of both residual branches of a block
  bool next_sentence = false;  // BERT: adds the pooler and the next-sentence head
  Precision precision = Precision::kFp32;
  bool recompute = false;  // keep only a block's input and run its forward again before its backward
  int minibatch = 4;       // sequences
  std::uint64_t seed = 1;

  bool operator==(const ModelConfig&) const = default;

  int blocks() const { return shape.layers + 2; }
  std::int64_t tokens_per_minibatch() const { return std::int64_t{minibatch} * shape.sequence; }
  std::size_t weight_bytes() const { return precision == Precision::kBf16 ? 2 : 4; }  // per parameter element

  // Of what one stage hands to the next, whatever the cut.
  std::size_t boundary_bytes() const {
    return static_cast<std::size_t>(tokens_per_minibatch()) * static_cast<std::size_t>(shape.hidden) * weight_bytes();
  }
};

// Refuses sizes that do not go together (hidden not a multiple of heads, dropout outside [0, 1), …).
Status check(const ModelConfig& config);

// One parameter under its Hugging Face name.
struct ParameterSpec {
  enum class Init : std::uint8_t { kNormal, kZero, kOne };

  std::string name;
  std::vector<std::int64_t> shape;
  Init init = Init::kNormal;
  double deviation = 0.02;  // of kNormal
  bool decay = true;        // weight decay: not for norms and biases

  // The head's copy of the token embedding, and that embedding. They are two parameters everywhere, start equal, and
  // have their gradients summed at their owners, so they stay equal.
  bool tied = false;

  std::int64_t elements() const;
  bool operator==(const ParameterSpec&) const = default;
};

// The parameters of one block (0 the embedding, 1 … layers the transformer blocks, layers + 1 the head), in the order
// that the block's code and every stored form use.
std::vector<ParameterSpec> parameters_of(const ModelConfig& config, int block);

// Where a stage's parameters lie in its flat buffers: one element type, each parameter aligned to 16 elements, the gaps
// zero for ever.
struct StageLayout {
  struct Entry {
    int block = 0;
    int index = 0;  // inside the block
    ParameterSpec parameter;
    std::int64_t offset = 0;  // in elements
  };

  int first_block = 0;
  int end_block = 0;
  std::vector<Entry> entries;
  std::int64_t elements = 0;  // gaps included

  const Entry* tied() const;  // the tied parameter of this stage, if it has one
};

StageLayout layout_of(const ModelConfig& config, int first_block, int end_block);

// What the planner and the timeline should believe about this model: parameters, what the blocks of trainer/torch keep
// between forward and backward and need besides while they compute, and times in proportion to the arithmetic.
scheduler::ModelProfile profile_of(const ModelConfig& config, Accumulation accumulation, double flops_per_second);

}  // namespace everstep::trainer
