#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <ATen/ATen.h>

#include "base/ids.h"
#include "trainer/model/data_source.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

using Tensors = std::vector<at::Tensor>;

// Of weights, activations and their gradients.
inline at::ScalarType scalar_type(const ModelConfig& config) {
  return config.precision == Precision::kBf16 ? at::kBFloat16 : at::kFloat;
}

// Which rows of a table a minibatch looks up, as the gradient of the table wants it. Made on the host: no device has to
// be asked how many there are.
struct Lookup {
  at::Tensor distinct;  // [m], int64: the rows, ascending
  at::Tensor place;     // [n], int64: of each looked-up row among them
};

// A minibatch as the blocks want it, on the device of their weights.
struct BatchTensors {
  at::Tensor tokens;          // [sequences, length], int64
  at::Tensor labels;          // [sequences · length], int64
  at::Tensor segments;        // BERT: [sequences, length], int64
  at::Tensor attention_mask;  // BERT: [sequences, 1, 1, length], 0 or -inf in the model's precision; undefined if no
                              // row is padded
  at::Tensor follows;         // BERT: [sequences], int64
  at::Tensor masked;          // BERT: [m], int64: where labels are to be predicted, ascending
  Lookup token_lookup;        // for the embedding's backward
  Lookup segment_lookup;      // BERT: the same
};

// Where the embedding's backward does not run, the lookups are left undefined. Throws c10::Error if a label is neither
// a class nor kIgnoredLabel: no kernel looks.
BatchTensors to_tensors(const Minibatch& minibatch, const ModelConfig& config, c10::Device device = at::kCPU,
                        bool with_lookups = true);

// What a block has to know besides its tensors.
struct BlockCall {
  const ModelConfig& model;
  int block = 0;
  const BatchTensors& batch;
  Position position;  // keys dropout
  bool training = true;
  double loss_weight = 1;  // at the head's backward: what the loss counts with, 1/M
};

// Takes the gradients of one block's parameters, each exactly once per backward.
class GradientSink {
 public:
  virtual ~GradientSink() = default;
  virtual void add(int parameter, const at::Tensor& gradient) = 0;
  // The same for `left` times `right` (matrices), which a sink may compute straight into its sum.
  virtual void add_product(int parameter, const at::Tensor& left, const at::Tensor& right) = 0;
  // The same for a matrix that is zero but for `rows`, row i standing at index[i]; no index twice.
  virtual void add_rows(int parameter, const at::Tensor& index, const at::Tensor& rows) = 0;
};

// Gradients of one block's weights that a backward leaves for later: work on tensors that it keeps until then. To be
// run once, in this order, with a sink of the same block.
using OwedGradients = std::vector<std::function<void(GradientSink& sink)>>;

inline void add_owed(const OwedGradients& owed, GradientSink& sink) {
  for (const auto& add : owed) add(sink);
}

// Forward and backward of one block as pure functions of the weights handed in: no autograd graph, so nothing but
// `saved` outlives a forward, and a backward may be given newer weights than its forward had. Weights are in the order
// of parameters_of(). What a backward needs of the weights it takes from its argument; `saved` holds no copy of them.
class Block {
 public:
  virtual ~Block() = default;

  // The embedding ignores `input`; the head returns the minibatch's loss, a scalar in fp32 that is still on the device.
  virtual at::Tensor forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call,
                             Tensors& saved) const = 0;

  // The gradient of the input (undefined for the embedding). The head ignores `output_gradient`. Leaves the gradients
  // of the weights in `owed`, which keeps the input and the output's gradient of each dense layer. Only the head's
  // decoder goes to `sink` at once: the gradient of its output has the vocabulary's size.
  virtual at::Tensor backward(const Tensors& weights, const Tensors& saved, const at::Tensor& output_gradient,
                              const BlockCall& call, GradientSink& sink, OwedGradients& owed) const = 0;
};

std::vector<std::unique_ptr<Block>> make_blocks(const ModelConfig& config, int first_block, int end_block);

// The initial value of a parameter: a pure function of seed, block, index and element.
at::Tensor initial_value(const ModelConfig& config, int block, int index, const ParameterSpec& parameter);

}  // namespace everstep::trainer
