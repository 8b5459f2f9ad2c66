#pragma once

#include <optional>

#include "trainer/torch/block.h"
#include "trainer/torch/ops.h"

namespace everstep::trainer {

// The pieces that blocks are made of. Activations are [tokens, hidden] matrices; parameters are named by their index in
// the block, which is also their place in `weights`.

inline constexpr double kGptNormEpsilon = 1e-5;
inline constexpr double kBertNormEpsilon = 1e-12;

// How a matrix of weights is stored.
enum class MatrixOrder : std::uint8_t {
  kInputOutput,  // GPT-2: one row per input
  kOutputInput,  // BERT: one row per output
};

// A dense layer: weight at `weight`, bias at `weight + 1`.
struct Dense {
  int weight = 0;
  MatrixOrder order = MatrixOrder::kOutputInput;

  at::Tensor forward(const Tensors& weights, const at::Tensor& input) const;

  // Both halves of a backward: the gradient of the input; and those of the weights, for later.
  at::Tensor input_gradient(const Tensors& weights, const at::Tensor& output_gradient) const;
  void owe_gradients(const at::Tensor& input, const at::Tensor& output_gradient, OwedGradients& owed) const;
  at::Tensor backward(const Tensors& weights, const at::Tensor& input, const at::Tensor& output_gradient,
                      OwedGradients& owed) const;

 private:
  void add_gradients(const at::Tensor& input, const at::Tensor& output_gradient, GradientSink& sink) const;
};

// A layer norm: weight at `weight`, bias at `weight + 1`.
struct Norm {
  int weight = 0;
  double epsilon = kGptNormEpsilon;

  struct Output {
    at::Tensor value;
    at::Tensor mean;
    at::Tensor inverse_deviation;
  };

  Output forward(const Tensors& weights, const at::Tensor& input) const;

  // Returns the gradient of the input. Those of the weights are made in the same pass over the input: they are small,
  // so that keeping them is cheaper than a second pass. Only to add them is left for later.
  at::Tensor backward(const Tensors& weights, const at::Tensor& input, const at::Tensor& mean,
                      const at::Tensor& inverse_deviation, const at::Tensor& output_gradient,
                      OwedGradients& owed) const;
};

// Attention over rows of `length` tokens; queries, keys and values may be views with any stride between tokens. By one
// of LibTorch's fused kernels: the CPU's; on a GPU flash attention, or where that cannot (fp32, a mask) the
// memory-efficient one. In fp32 on a CPU that has_wide_product() by the project's own. A backward takes the kernel of
// its forward.
struct Attention {
  std::int64_t length = 0;
  std::int64_t heads = 0;
  bool causal = false;
  std::optional<at::Tensor> mask;

  struct Output {
    at::Tensor value;
    at::Tensor log_sum;
  };

  struct Gradients {
    at::Tensor query;
    at::Tensor key;
    at::Tensor value;
    at::Tensor all;  // if the three lie side by side: what they are parts of

    at::Tensor joined() const;
  };

  Output forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;
  Gradients backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Output& output,
                     const at::Tensor& output_gradient) const;

 private:
  ops::AttentionHeads by_number() const { return {length, heads, causal, mask}; }
  Output wide_forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const;
  Gradients wide_backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Output& output,
                          const at::Tensor& output_gradient) const;
  std::optional<at::Tensor> bias(const at::Tensor& query) const;
  at::Tensor by_head(const at::Tensor& activations) const;
  at::Tensor by_token(const at::Tensor& activations, std::int64_t head_size) const;
};

Attention attention_of(const BlockCall& call);

// Mean cross entropy of `logits` [n, classes] against those of `labels` [n] that are not kIgnoredLabel, in fp32
// whatever the logits are; 0 if there are none.
struct CrossEntropy {
  at::Tensor loss;               // a scalar in fp32, on the device
  at::Tensor log_probabilities;  // fp32
};

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& labels);

// The gradient of the logits where the loss counts with `weight`, in the precision `type`.
at::Tensor cross_entropy_backward(const at::Tensor& log_probabilities, const at::Tensor& labels, double weight,
                                  at::ScalarType type);

// The gradient of a table whose rows were looked up to make the n rows of `gradient`.
void add_lookup_gradient(int table, const Lookup& lookup, const at::Tensor& gradient, GradientSink& sink);

// The gradient of a table of positions, whose first rows were added to every row of tokens.
void add_position_gradient(int table, std::int64_t length, const at::Tensor& gradient, GradientSink& sink);

}  // namespace everstep::trainer
