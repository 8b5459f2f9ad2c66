#include "trainer/torch/blocks.h"
#include "trainer/torch/layers.h"
#include "trainer/torch/product.h"

namespace everstep::trainer {
namespace {

constexpr Norm kNorm{0, kGptNormEpsilon};
constexpr int kDecoder = 2;

enum Saved { kInput, kMean, kInverseDeviation, kNormed, kLabels, kLogProbabilities };

// Final norm, scores over the vocabulary, mean cross entropy.
class GptHead final : public Block {
 public:
  at::Tensor forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call,
                     Tensors& saved) const override {
    const Norm::Output normed = kNorm.forward(weights, input);
    const CrossEntropy entropy = cross_entropy(product(normed.value, weights[kDecoder].t()), call.batch.labels);
    saved = {input, normed.mean, normed.inverse_deviation, normed.value, call.batch.labels, entropy.log_probabilities};
    return entropy.loss;
  }

  at::Tensor backward(const Tensors& weights, const Tensors& saved, const at::Tensor& /*output_gradient*/,
                      const BlockCall& call, GradientSink& sink, OwedGradients& owed) const override {
    const at::Tensor scores =
        cross_entropy_backward(saved[kLogProbabilities], saved[kLabels], call.loss_weight, saved[kInput].scalar_type());
    sink.add_product(kDecoder, scores.t(), saved[kNormed]);
    return kNorm.backward(weights, saved[kInput], saved[kMean], saved[kInverseDeviation],
                          product(scores, weights[kDecoder]), owed);
  }
};

}  // namespace

std::unique_ptr<Block> make_gpt_head() { return std::make_unique<GptHead>(); }

}  // namespace everstep::trainer
