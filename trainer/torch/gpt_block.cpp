#include "trainer/torch/blocks.h"
#include "trainer/torch/dropout.h"
#include "trainer/torch/gelu.h"
#include "trainer/torch/layers.h"

namespace everstep::trainer {
namespace {

// In the order of parameters_of(), two parameters each.
constexpr Norm kAttentionNorm{0, kGptNormEpsilon};
constexpr Dense kQueryKeyValue{2, MatrixOrder::kInputOutput};
constexpr Dense kAttentionOutput{4, MatrixOrder::kInputOutput};
constexpr Norm kFeedForwardNorm{6, kGptNormEpsilon};
constexpr Dense kWiden{8, MatrixOrder::kInputOutput};
constexpr Dense kNarrow{10, MatrixOrder::kInputOutput};

enum Saved {
  kInput,
  kInputMean,
  kInputInverseDeviation,
  kAttended,  // what the attention works on: the first norm's output
  kProjected,
  kAttention,
  kAttentionLogSum,
  kMiddle,  // the residual stream between attention and feed-forward
  kMiddleMean,
  kMiddleInverseDeviation,
  kFeedForwardInput,
  kWide,
};

// GPT-2's decoder block: x += attention(norm(x)); x += feed_forward(norm(x)).
class GptBlock final : public Block {
 public:
  at::Tensor forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call,
                     Tensors& saved) const override {
    const Norm::Output attended = kAttentionNorm.forward(weights, input);
    const at::Tensor projected = kQueryKeyValue.forward(weights, attended.value);
    const Tensors parts = projected.chunk(3, 1);
    const Attention::Output attention = attention_of(call).forward(parts[0], parts[1], parts[2]);
    at::Tensor middle =
        drop_out(kAttentionOutput.forward(weights, attention.value), call, RandomUse::kAttentionDropout);
    middle.add_(input);

    const Norm::Output normed = kFeedForwardNorm.forward(weights, middle);
    const at::Tensor wide = kWiden.forward(weights, normed.value);
    const at::Tensor activated = tanh_gelu(wide);
    at::Tensor output = drop_out(kNarrow.forward(weights, activated), call, RandomUse::kFeedForwardDropout);
    output.add_(middle);

    saved = {input,
             attended.mean,
             attended.inverse_deviation,
             attended.value,
             projected,
             attention.value,
             attention.log_sum,
             middle,
             normed.mean,
             normed.inverse_deviation,
             normed.value,
             wide};
    return output;
  }

  at::Tensor backward(const Tensors& weights, const Tensors& saved, const at::Tensor& output_gradient,
                      const BlockCall& call, GradientSink& /*sink*/, OwedGradients& owed) const override {
    at::Tensor gradient = drop_out(output_gradient, call, RandomUse::kFeedForwardDropout);
    const GeluBackward gelu = tanh_gelu_backward(saved[kWide], kNarrow.input_gradient(weights, gradient));
    kNarrow.owe_gradients(gelu.value, gradient, owed);
    gradient = kWiden.backward(weights, saved[kFeedForwardInput], gelu.input_gradient, owed);
    at::Tensor middle_gradient = kFeedForwardNorm.backward(weights, saved[kMiddle], saved[kMiddleMean],
                                                           saved[kMiddleInverseDeviation], gradient, owed);
    middle_gradient.add_(output_gradient);

    gradient = drop_out(middle_gradient, call, RandomUse::kAttentionDropout);
    gradient = kAttentionOutput.backward(weights, saved[kAttention], gradient, owed);
    const Tensors parts = saved[kProjected].chunk(3, 1);
    const Attention::Gradients gradients = attention_of(call).backward(
        parts[0], parts[1], parts[2], {saved[kAttention], saved[kAttentionLogSum]}, gradient);
    gradient = kQueryKeyValue.backward(weights, saved[kAttended], gradients.joined(), owed);
    at::Tensor input_gradient = kAttentionNorm.backward(weights, saved[kInput], saved[kInputMean],
                                                        saved[kInputInverseDeviation], gradient, owed);
    return input_gradient.add_(middle_gradient);
  }
};

}  // namespace

std::unique_ptr<Block> make_gpt_block() { return std::make_unique<GptBlock>(); }

}  // namespace everstep::trainer
