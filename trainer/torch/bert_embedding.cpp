#include "trainer/torch/blocks.h"
#include "trainer/torch/dropout.h"
#include "trainer/torch/layers.h"

namespace everstep::trainer {
namespace {

enum Parameter { kTokens, kPositions, kSegments, kNormWeight };
constexpr Norm kNorm{kNormWeight, kBertNormEpsilon};

enum Saved { kSum, kMean, kInverseDeviation };

class BertEmbedding final : public Block {
 public:
  at::Tensor forward(const Tensors& weights, const at::Tensor& /*input*/, const BlockCall& call,
                     Tensors& saved) const override {
    const at::Tensor& tokens = call.batch.tokens;
    const at::Tensor sum = weights[kTokens].index_select(0, tokens.view(-1));
    sum.add_(weights[kSegments].index_select(0, call.batch.segments.view(-1)));
    sum.view({-1, tokens.size(1), sum.size(1)}).add_(weights[kPositions].narrow(0, 0, tokens.size(1)));
    const Norm::Output normed = kNorm.forward(weights, sum);
    saved = {sum, normed.mean, normed.inverse_deviation};
    return drop_out(normed.value, call, RandomUse::kEmbeddingDropout);
  }

  at::Tensor backward(const Tensors& weights, const Tensors& saved, const at::Tensor& output_gradient,
                      const BlockCall& call, GradientSink& /*sink*/, OwedGradients& owed) const override {
    const at::Tensor normed_gradient = drop_out(output_gradient, call, RandomUse::kEmbeddingDropout);
    const at::Tensor gradient =
        kNorm.backward(weights, saved[kSum], saved[kMean], saved[kInverseDeviation], normed_gradient, owed);
    owed.emplace_back([tokens = call.batch.token_lookup, segments = call.batch.segment_lookup,
                       length = call.batch.tokens.size(1), gradient](GradientSink& sink) {
      add_lookup_gradient(kTokens, tokens, gradient, sink);
      add_position_gradient(kPositions, length, gradient, sink);
      add_lookup_gradient(kSegments, segments, gradient, sink);
    });
    return {};
  }
};

}  // namespace

std::unique_ptr<Block> make_bert_embedding() { return std::make_unique<BertEmbedding>(); }

}  // namespace everstep::trainer
