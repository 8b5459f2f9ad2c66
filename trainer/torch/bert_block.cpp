#include "trainer/torch/blocks.h"
#include "trainer/torch/dropout.h"
#include "trainer/torch/layers.h"

namespace everstep::trainer {
namespace {

// In the order of parameters_of(), two parameters each.
constexpr Dense kQuery{0};
constexpr Dense kKey{2};
constexpr Dense kValue{4};
constexpr Dense kAttentionOutput{6};
constexpr Norm kAttentionNorm{8, kBertNormEpsilon};
constexpr Dense kWiden{10};
constexpr Dense kNarrow{12};
constexpr Norm kFeedForwardNorm{14, kBertNormEpsilon};

enum Saved {
  kInput,
  kQueries,
  kKeys,
  kValues,
  kAttention,
  kAttentionLogSum,
  kAttentionSum,  // before the first norm
  kAttentionMean,
  kAttentionInverseDeviation,
  kMiddle,  // after it
  kWide,
  kActivated,
  kFeedForwardSum,  // before the second norm
  kFeedForwardMean,
  kFeedForwardInverseDeviation,
};

// BERT's encoder block: x = norm(x + attention(x)); x = norm(x + feed_forward(x)).
class BertBlock final : public Block {
 public:
  at::Tensor forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call,
                     Tensors& saved) const override {
    const at::Tensor queries = kQuery.forward(weights, input);
    const at::Tensor keys = kKey.forward(weights, input);
    const at::Tensor values = kValue.forward(weights, input);
    const Attention::Output attention = attention_of(call).forward(queries, keys, values);
    at::Tensor attention_sum =
        drop_out(kAttentionOutput.forward(weights, attention.value), call, RandomUse::kAttentionDropout);
    attention_sum.add_(input);
    const Norm::Output middle = kAttentionNorm.forward(weights, attention_sum);

    const at::Tensor wide = kWiden.forward(weights, middle.value);
    const at::Tensor activated = at::gelu(wide);
    at::Tensor feed_forward_sum = drop_out(kNarrow.forward(weights, activated), call, RandomUse::kFeedForwardDropout);
    feed_forward_sum.add_(middle.value);
    const Norm::Output output = kFeedForwardNorm.forward(weights, feed_forward_sum);

    saved = {input,
             queries,
             keys,
             values,
             attention.value,
             attention.log_sum,
             attention_sum,
             middle.mean,
             middle.inverse_deviation,
             middle.value,
             wide,
             activated,
             feed_forward_sum,
             output.mean,
             output.inverse_deviation};
    return output.value;
  }

  at::Tensor backward(const Tensors& weights, const Tensors& saved, const at::Tensor& output_gradient,
                      const BlockCall& call, GradientSink& /*sink*/, OwedGradients& owed) const override {
    const at::Tensor sum_gradient =
        kFeedForwardNorm.backward(weights, saved[kFeedForwardSum], saved[kFeedForwardMean],
                                  saved[kFeedForwardInverseDeviation], output_gradient, owed);
    at::Tensor gradient = drop_out(sum_gradient, call, RandomUse::kFeedForwardDropout);
    gradient = kNarrow.backward(weights, saved[kActivated], gradient, owed);
    gradient = at::gelu_backward(gradient, saved[kWide]);
    gradient = kWiden.backward(weights, saved[kMiddle], gradient, owed).add_(sum_gradient);
    return attention_backward(weights, saved, gradient, call, owed);
  }

 private:
  static at::Tensor attention_backward(const Tensors& weights, const Tensors& saved, const at::Tensor& middle_gradient,
                                       const BlockCall& call, OwedGradients& owed) {
    const at::Tensor sum_gradient = kAttentionNorm.backward(weights, saved[kAttentionSum], saved[kAttentionMean],
                                                            saved[kAttentionInverseDeviation], middle_gradient, owed);
    at::Tensor gradient = drop_out(sum_gradient, call, RandomUse::kAttentionDropout);
    gradient = kAttentionOutput.backward(weights, saved[kAttention], gradient, owed);
    const Attention::Gradients gradients = attention_of(call).backward(
        saved[kQueries], saved[kKeys], saved[kValues], {saved[kAttention], saved[kAttentionLogSum]}, gradient);
    at::Tensor input_gradient = kQuery.backward(weights, saved[kInput], gradients.query, owed);
    input_gradient.add_(kKey.backward(weights, saved[kInput], gradients.key, owed));
    input_gradient.add_(kValue.backward(weights, saved[kInput], gradients.value, owed));
    return input_gradient.add_(sum_gradient);
  }
};

}  // namespace

std::unique_ptr<Block> make_bert_block() { return std::make_unique<BertBlock>(); }

}  // namespace everstep::trainer
