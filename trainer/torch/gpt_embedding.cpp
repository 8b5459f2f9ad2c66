#include "trainer/torch/blocks.h"
#include "trainer/torch/dropout.h"
#include "trainer/torch/layers.h"

namespace everstep::trainer {
namespace {

enum Parameter { kTokens, kPositions };

class GptEmbedding final : public Block {
 public:
  at::Tensor forward(const Tensors& weights, const at::Tensor& /*input*/, const BlockCall& call,
                     Tensors& /*saved*/) const override {
    const at::Tensor& tokens = call.batch.tokens;
    const std::int64_t hidden = weights[kTokens].size(1);
    const at::Tensor looked_up = weights[kTokens].index_select(0, tokens.view(-1));
    looked_up.view({-1, tokens.size(1), hidden}).add_(weights[kPositions].narrow(0, 0, tokens.size(1)));
    return drop_out(looked_up, call, RandomUse::kEmbeddingDropout);
  }

  at::Tensor backward(const Tensors& /*weights*/, const Tensors& /*saved*/, const at::Tensor& output_gradient,
                      const BlockCall& call, GradientSink& /*sink*/, OwedGradients& owed) const override {
    const at::Tensor gradient = drop_out(output_gradient, call, RandomUse::kEmbeddingDropout);
    owed.emplace_back(
        [lookup = call.batch.token_lookup, length = call.batch.tokens.size(1), gradient](GradientSink& sink) {
          add_lookup_gradient(kTokens, lookup, gradient, sink);
          add_position_gradient(kPositions, length, gradient, sink);
        });
    return {};
  }
};

}  // namespace

std::unique_ptr<Block> make_gpt_embedding() { return std::make_unique<GptEmbedding>(); }

}  // namespace everstep::trainer
