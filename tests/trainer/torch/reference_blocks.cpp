#include "tests/trainer/torch/reference_blocks.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "trainer/model/random_key.h"

namespace everstep::trainer {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double epsilon) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + epsilon).sqrt() * weight + bias;
}

at::Tensor tanh_gelu(const at::Tensor& x) {
  return 0.5 * x * (1.0 + (std::sqrt(2.0 / std::numbers::pi) * (x + 0.044715 * x.pow(3))).tanh());
}

at::Tensor erf_gelu(const at::Tensor& x) { return 0.5 * x * (1.0 + (x / std::sqrt(2.0)).erf()); }

at::Tensor drop(const at::Tensor& x, const BlockCall& call, RandomUse use) {
  if (!call.training) return x;
  const RandomStream stream = random_stream(call.model.seed, use, call.block, call.position.value);
  const long dropped = std::lround(call.model.dropout * 65536);
  at::Tensor mask = at::empty({x.numel()}, at::kDouble);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto words =
        philox({static_cast<std::uint32_t>(stream.seed()), static_cast<std::uint32_t>(stream.seed() >> 32)},
               {static_cast<std::uint32_t>(i / 8), 0, static_cast<std::uint32_t>(stream.stream()),
                static_cast<std::uint32_t>(stream.stream() >> 32)});
    const std::uint32_t half_word = words[static_cast<std::size_t>(i % 8 / 2)] >> (i % 2 * 16) & 0xFFFF;
    mask[i] = half_word < dropped ? 0.0 : 65536.0 / static_cast<double>(65536 - dropped);
  }
  return x * mask.view_as(x).to(x.scalar_type());
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const BlockCall& call) {
  const std::int64_t length = call.batch.tokens.size(1);
  const auto by_head = [&](const at::Tensor& x) {
    return x.reshape({-1, length, call.model.shape.heads, x.size(1) / call.model.shape.heads}).permute({0, 2, 1, 3});
  };
  at::Tensor scores = by_head(q).matmul(by_head(k).transpose(2, 3)) /
                      std::sqrt(static_cast<double>(q.size(1) / call.model.shape.heads));
  if (call.model.shape.family == scheduler::ModelFamily::kGpt) {
    scores = scores + at::full({length, length}, -kInfinity, scores.options()).triu(1);
  } else if (call.batch.attention_mask.defined()) {
    scores = scores + call.batch.attention_mask;
  }
  return scores.softmax(-1).matmul(by_head(v)).permute({0, 2, 1, 3}).reshape(q.sizes());
}

at::Tensor mean_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor counted = labels.ne(kIgnoredLabel).nonzero().squeeze(1);
  if (counted.numel() == 0) return logits.sum() * 0;
  const at::Tensor rows = logits.index_select(0, counted).log_softmax(1);
  return -rows.gather(1, labels.index_select(0, counted).unsqueeze(1)).mean();
}

at::Tensor gpt_forward(const Tensors& w, const at::Tensor& x, const BlockCall& call) {
  const at::Tensor& tokens = call.batch.tokens;
  if (call.block == 0) {
    const at::Tensor sum = w[0].index({tokens}) + w[1].slice(0, 0, tokens.size(1));
    return drop(sum.reshape({-1, w[0].size(1)}), call, RandomUse::kEmbeddingDropout);
  }
  if (call.block == call.model.blocks() - 1) {
    return mean_entropy(norm(x, w[0], w[1], 1e-5).matmul(w[2].t()), call.batch.labels);
  }
  const Tensors qkv = (norm(x, w[0], w[1], 1e-5).matmul(w[2]) + w[3]).split(x.size(1), 1);
  const at::Tensor attended = attention(qkv[0], qkv[1], qkv[2], call).matmul(w[4]) + w[5];
  const at::Tensor middle = x + drop(attended, call, RandomUse::kAttentionDropout);
  const at::Tensor wide = tanh_gelu(norm(middle, w[6], w[7], 1e-5).matmul(w[8]) + w[9]);
  return middle + drop(wide.matmul(w[10]) + w[11], call, RandomUse::kFeedForwardDropout);
}

at::Tensor bert_head(const Tensors& w, const at::Tensor& x, const BlockCall& call) {
  const at::Tensor transformed = norm(erf_gelu(x.matmul(w[1].t()) + w[2]), w[3], w[4], 1e-12);
  at::Tensor loss = mean_entropy(transformed.matmul(w[5].t()) + w[0], call.batch.labels);
  if (call.model.next_sentence) {
    const at::Tensor first = x.view({call.batch.tokens.size(0), -1, x.size(1)}).select(1, 0);
    const at::Tensor pooled = (first.matmul(w[6].t()) + w[7]).tanh();
    loss = loss + mean_entropy(pooled.matmul(w[8].t()) + w[9], call.batch.follows);
  }
  return loss;
}

at::Tensor bert_forward(const Tensors& w, const at::Tensor& x, const BlockCall& call) {
  const at::Tensor& tokens = call.batch.tokens;
  if (call.block == 0) {
    const at::Tensor sum = w[0].index({tokens}) + w[1].slice(0, 0, tokens.size(1)) + w[2].index({call.batch.segments});
    return drop(norm(sum.reshape({-1, w[0].size(1)}), w[3], w[4], 1e-12), call, RandomUse::kEmbeddingDropout);
  }
  if (call.block == call.model.blocks() - 1) return bert_head(w, x, call);
  const auto linear = [&](const at::Tensor& input, std::size_t i) { return input.matmul(w[i].t()) + w[i + 1]; };
  const at::Tensor attended = linear(attention(linear(x, 0), linear(x, 2), linear(x, 4), call), 6);
  const at::Tensor middle = norm(x + drop(attended, call, RandomUse::kAttentionDropout), w[8], w[9], 1e-12);
  const at::Tensor narrow = linear(erf_gelu(linear(middle, 10)), 12);
  return norm(middle + drop(narrow, call, RandomUse::kFeedForwardDropout), w[14], w[15], 1e-12);
}

}  // namespace

at::Tensor reference_forward(const Tensors& weights, const at::Tensor& input, const BlockCall& call) {
  return call.model.shape.family == scheduler::ModelFamily::kGpt ? gpt_forward(weights, input, call)
                                                                 : bert_forward(weights, input, call);
}

}  // namespace everstep::trainer
