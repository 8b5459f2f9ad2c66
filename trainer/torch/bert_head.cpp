#include "trainer/torch/blocks.h"
#include "trainer/torch/layers.h"
#include "trainer/torch/product.h"

namespace everstep::trainer {
namespace {

// In the order of parameters_of().
constexpr int kDecoderBias = 0;
constexpr Dense kTransform{1};
constexpr Norm kNorm{3, kBertNormEpsilon};
constexpr int kDecoder = 5;
constexpr Dense kPooler{6};
constexpr Dense kNextSentence{8};

enum Saved {
  kSelected,
  kTransformed,
  kActivated,
  kMean,
  kInverseDeviation,
  kNormed,
  kLogProbabilities,
  kFirst,  // this and the following with the next-sentence head only
  kPooled,
  kFollowsLogProbabilities,
};

// Predicts the hidden tokens, at their places alone, and with `next_sentence` also whether the second sentence follows
// the first; the loss is the sum of both mean cross entropies.
class BertHead final : public Block {
 public:
  explicit BertHead(bool next_sentence) : next_sentence_(next_sentence) {}

  at::Tensor forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call,
                     Tensors& saved) const override {
    const at::Tensor& places = call.batch.masked;
    const at::Tensor selected = input.index_select(0, places);
    const at::Tensor transformed = kTransform.forward(weights, selected);
    const at::Tensor activated = at::gelu(transformed);
    const Norm::Output normed = kNorm.forward(weights, activated);
    const at::Tensor logits = product(normed.value, weights[kDecoder].t(), weights[kDecoderBias]);
    const CrossEntropy entropy = cross_entropy(logits, call.batch.labels.index_select(0, places));
    saved = {selected,
             transformed,
             activated,
             normed.mean,
             normed.inverse_deviation,
             normed.value,
             entropy.log_probabilities};
    if (!next_sentence_) return entropy.loss;
    return entropy.loss + next_sentence_loss(weights, input, call, saved);
  }

  at::Tensor backward(const Tensors& weights, const Tensors& saved, const at::Tensor& /*output_gradient*/,
                      const BlockCall& call, GradientSink& sink, OwedGradients& owed) const override {
    const at::Tensor labels = call.batch.labels.index_select(0, call.batch.masked);
    const at::Tensor scores =
        cross_entropy_backward(saved[kLogProbabilities], labels, call.loss_weight, saved[kSelected].scalar_type());
    sink.add(kDecoderBias, scores.sum(0, false, at::kFloat));
    sink.add_product(kDecoder, scores.t(), saved[kNormed]);
    at::Tensor gradient = kNorm.backward(weights, saved[kActivated], saved[kMean], saved[kInverseDeviation],
                                         product(scores, weights[kDecoder]), owed);
    gradient = at::gelu_backward(gradient, saved[kTransformed]);
    gradient = kTransform.backward(weights, saved[kSelected], gradient, owed);
    at::Tensor input_gradient = at::zeros({call.batch.labels.numel(), gradient.size(1)}, gradient.options());
    input_gradient.index_copy_(0, call.batch.masked, gradient);
    if (next_sentence_) {
      first_tokens(input_gradient, call).add_(next_sentence_backward(weights, saved, call, owed));
    }
    return input_gradient;
  }

 private:
  static at::Tensor first_tokens(const at::Tensor& activations, const BlockCall& call) {
    return activations.view({-1, call.batch.tokens.size(1), activations.size(1)}).select(1, 0);
  }

  static at::Tensor next_sentence_loss(const Tensors& weights, const at::Tensor& input, const BlockCall& call,
                                       Tensors& saved) {
    const at::Tensor first = first_tokens(input, call).contiguous();
    const at::Tensor pooled = kPooler.forward(weights, first).tanh_();
    const CrossEntropy entropy = cross_entropy(kNextSentence.forward(weights, pooled), call.batch.follows);
    saved.insert(saved.end(), {first, pooled, entropy.log_probabilities});
    return entropy.loss;
  }

  // The gradient of each row's first token.
  static at::Tensor next_sentence_backward(const Tensors& weights, const Tensors& saved, const BlockCall& call,
                                           OwedGradients& owed) {
    const at::Tensor scores = cross_entropy_backward(saved[kFollowsLogProbabilities], call.batch.follows,
                                                     call.loss_weight, saved[kPooled].scalar_type());
    at::Tensor gradient = kNextSentence.backward(weights, saved[kPooled], scores, owed);
    gradient = at::tanh_backward(gradient, saved[kPooled]);
    return kPooler.backward(weights, saved[kFirst], gradient, owed);
  }

  bool next_sentence_;
};

}  // namespace

std::unique_ptr<Block> make_bert_head(bool next_sentence) { return std::make_unique<BertHead>(next_sentence); }

}  // namespace everstep::trainer
