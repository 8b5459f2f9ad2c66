#include "trainer/torch/layers.h"

#include <cmath>
#include <tuple>
#include <utility>

#include "trainer/torch/product.h"
#include "trainer/torch/wide_product.h"

namespace everstep::trainer {
namespace {

enum class AttentionKernel : std::uint8_t { kWide, kCpu, kFlash, kEfficient };

AttentionKernel kernel_for(const at::Tensor& query, std::int64_t head_size, bool has_mask) {
  constexpr std::int64_t kLargestFlashHead = 256;
  if (!query.is_cuda()) {
    const bool is_wide = query.scalar_type() == at::kFloat && has_wide_product();
    return is_wide ? AttentionKernel::kWide : AttentionKernel::kCpu;
  }
  const bool fits_flash = head_size % 8 == 0 && head_size <= kLargestFlashHead;
  const bool is_flash = query.scalar_type() == at::kBFloat16 && !has_mask && fits_flash;
  return is_flash ? AttentionKernel::kFlash : AttentionKernel::kEfficient;
}

// A GPU's kernels take heads of whole 16 bytes only. Zeros change no product; the scale is that of the head itself.
at::Tensor padded_heads(const at::Tensor& by_head) {
  constexpr std::int64_t kUnitBytes = 16;
  const std::int64_t unit = kUnitBytes / static_cast<std::int64_t>(by_head.element_size());
  const std::int64_t missing = (unit - by_head.size(3) % unit) % unit;
  return missing == 0 ? by_head : at::constant_pad_nd(by_head, {0, missing}, 0);
}

}  // namespace

at::Tensor Dense::forward(const Tensors& weights, const at::Tensor& input) const {
  const at::Tensor& stored = weights[weight];
  return product(input, order == MatrixOrder::kInputOutput ? stored : stored.t(), weights[weight + 1]);
}

at::Tensor Dense::input_gradient(const Tensors& weights, const at::Tensor& output_gradient) const {
  const at::Tensor& stored = weights[weight];
  return product(output_gradient, order == MatrixOrder::kInputOutput ? stored.t() : stored);
}

void Dense::add_gradients(const at::Tensor& input, const at::Tensor& output_gradient, GradientSink& sink) const {
  sink.add(weight + 1, output_gradient.sum(0, false, at::kFloat));
  if (order == MatrixOrder::kInputOutput) {
    sink.add_product(weight, input.t(), output_gradient);
  } else {
    sink.add_product(weight, output_gradient.t(), input);
  }
}

void Dense::owe_gradients(const at::Tensor& input, const at::Tensor& output_gradient, OwedGradients& owed) const {
  owed.emplace_back([dense = *this, input, output_gradient](GradientSink& sink) {
    dense.add_gradients(input, output_gradient, sink);
  });
}

at::Tensor Dense::backward(const Tensors& weights, const at::Tensor& input, const at::Tensor& output_gradient,
                           OwedGradients& owed) const {
  owe_gradients(input, output_gradient, owed);
  return input_gradient(weights, output_gradient);
}

Norm::Output Norm::forward(const Tensors& weights, const at::Tensor& input) const {
  auto [value, mean, inverse_deviation] =
      at::native_layer_norm(input, {input.size(1)}, weights[weight], weights[weight + 1], epsilon);
  return {std::move(value), std::move(mean), std::move(inverse_deviation)};
}

at::Tensor Norm::backward(const Tensors& weights, const at::Tensor& input, const at::Tensor& mean,
                          const at::Tensor& inverse_deviation, const at::Tensor& output_gradient,
                          OwedGradients& owed) const {
  const auto [input_gradient, weight_gradient, bias_gradient] =
      at::native_layer_norm_backward(output_gradient, input, {input.size(1)}, mean, inverse_deviation, weights[weight],
                                     weights[weight + 1], {true, true, true});
  owed.emplace_back([first = weight, of_weight = weight_gradient, of_bias = bias_gradient](GradientSink& sink) {
    sink.add(first, of_weight);
    sink.add(first + 1, of_bias);
  });
  return input_gradient;
}

Attention attention_of(const BlockCall& call) {
  const bool causal = call.model.shape.family == scheduler::ModelFamily::kGpt;
  std::optional<at::Tensor> mask;
  if (!causal && call.batch.attention_mask.defined()) mask = call.batch.attention_mask;
  return {call.batch.tokens.size(1), call.model.shape.heads, causal, std::move(mask)};
}

// [tokens, hidden] as [sequences, heads, length, hidden / heads], and back; no copy either way, unless heads are
// padded.
at::Tensor Attention::by_head(const at::Tensor& activations) const {
  const std::int64_t sequences = activations.size(0) / length;
  const at::Tensor heads_apart =
      activations.view({sequences, length, heads, activations.size(1) / heads}).transpose(1, 2);
  return activations.is_cuda() ? padded_heads(heads_apart) : heads_apart;
}

at::Tensor Attention::by_token(const at::Tensor& activations, std::int64_t head_size) const {
  const at::Tensor unpadded = activations.size(3) == head_size ? activations : activations.narrow(3, 0, head_size);
  return unpadded.transpose(1, 2).reshape({activations.size(0) * length, heads * head_size});
}

// The mask for the memory-efficient kernel, which wants every query's row, and rows that begin at multiples of 16.
std::optional<at::Tensor> Attention::bias(const at::Tensor& query) const {
  constexpr std::int64_t kUnit = 16;
  if (!mask) return std::nullopt;
  const std::int64_t missing = (kUnit - length % kUnit) % kUnit;
  const at::Tensor padded = missing == 0 ? *mask : at::constant_pad_nd(*mask, {0, missing}, 0).narrow(3, 0, length);
  return padded.expand({query.size(0) / length, heads, length, length});
}

Attention::Output Attention::wide_forward(const at::Tensor& query, const at::Tensor& key,
                                          const at::Tensor& value) const {
  Output output{at::empty(query.sizes(), query.options()),
                at::empty({query.size(0) / length, heads, length}, query.options())};
  ops::attend(output.value, output.log_sum, query, key, value, by_number());
  return output;
}

Attention::Gradients Attention::wide_backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                              const Output& output, const at::Tensor& output_gradient) const {
  const at::Tensor all = at::empty({query.size(0), 3 * query.size(1)}, query.options());
  const Tensors parts = all.chunk(3, 1);
  ops::attend_backward(parts[0], parts[1], parts[2], output_gradient, query, key, value, output.value, output.log_sum,
                       by_number());
  return {parts[0], parts[1], parts[2], all};
}

at::Tensor Attention::Gradients::joined() const { return all.defined() ? all : at::cat({query, key, value}, 1); }

Attention::Output Attention::forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
  const at::Tensor q = by_head(query);
  const at::Tensor k = by_head(key);
  const at::Tensor v = by_head(value);
  const std::int64_t head_size = query.size(1) / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_size));
  at::Tensor output;
  at::Tensor log_sum;
  switch (kernel_for(query, q.size(3), mask.has_value())) {
    case AttentionKernel::kWide:
      return wide_forward(query, key, value);
    case AttentionKernel::kCpu:
      std::tie(output, log_sum) = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, mask);
      break;
    case AttentionKernel::kFlash: {
      auto result = at::_scaled_dot_product_flash_attention(q, k, v, 0.0, causal, false, scale);
      output = std::get<0>(result);
      log_sum = std::get<1>(result);
      break;
    }
    case AttentionKernel::kEfficient: {
      auto result = at::_scaled_dot_product_efficient_attention(q, k, v, bias(query), true, 0.0, causal, scale);
      output = std::get<0>(result);
      log_sum = std::get<1>(result);
      break;
    }
  }
  return {by_token(output, head_size), std::move(log_sum)};
}

Attention::Gradients Attention::backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         const Output& output, const at::Tensor& output_gradient) const {
  const at::Tensor q = by_head(query);
  const at::Tensor k = by_head(key);
  const at::Tensor v = by_head(value);
  const at::Tensor out = by_head(output.value);
  const at::Tensor out_gradient = by_head(output_gradient);
  const std::int64_t head_size = query.size(1) / heads;
  const double scale = 1 / std::sqrt(static_cast<double>(head_size));
  // Kernels without dropout read no seed and no offset of random numbers.
  const auto none = [&](at::IntArrayRef shape) { return at::empty(shape, query.options().dtype(at::kLong)); };
  at::Tensor q_gradient;
  at::Tensor k_gradient;
  at::Tensor v_gradient;
  switch (kernel_for(query, q.size(3), mask.has_value())) {
    case AttentionKernel::kWide:
      return wide_backward(query, key, value, output, output_gradient);
    case AttentionKernel::kCpu:
      std::tie(q_gradient, k_gradient, v_gradient) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
          out_gradient, q, k, v, out, output.log_sum, 0.0, causal, mask);
      break;
    case AttentionKernel::kFlash:
      std::tie(q_gradient, k_gradient, v_gradient) = at::_scaled_dot_product_flash_attention_backward(
          out_gradient, q, k, v, out, output.log_sum, {}, {}, length, length, 0.0, causal, none({0}), none({0}), scale);
      break;
    case AttentionKernel::kEfficient:
      std::tie(q_gradient, k_gradient, v_gradient, std::ignore) = at::_scaled_dot_product_efficient_attention_backward(
          out_gradient, q, k, v, bias(query).value_or(at::Tensor()), out, output.log_sum, none({}), none({}), 0.0,
          {true, true, true, false}, causal, scale);
      break;
  }
  return {by_token(q_gradient, head_size), by_token(k_gradient, head_size), by_token(v_gradient, head_size), {}};
}

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor log_probabilities = at::_log_softmax(logits.to(at::kFloat), 1, false);
  at::Tensor loss = at::empty({}, log_probabilities.options());
  ops::cross_entropy(loss, log_probabilities, labels);
  return {loss, log_probabilities};
}

at::Tensor cross_entropy_backward(const at::Tensor& log_probabilities, const at::Tensor& labels, double weight,
                                  at::ScalarType type) {
  at::Tensor gradient = at::empty_like(log_probabilities);
  ops::cross_entropy_backward(gradient, log_probabilities, labels, weight);
  return gradient.to(type);
}

void add_lookup_gradient(int table, const Lookup& lookup, const at::Tensor& gradient, GradientSink& sink) {
  // How many rows differ is another number in every minibatch. A device has room for the most there can be: a block of
  // one size is always used again.
  const std::int64_t distinct = lookup.distinct.numel();
  const std::int64_t room = gradient.is_cpu() ? distinct : gradient.size(0);
  const at::Tensor rows = at::embedding_dense_backward(gradient.to(at::kFloat), lookup.place, room, -1, false);
  sink.add_rows(table, lookup.distinct, rows.narrow(0, 0, distinct));
}

void add_position_gradient(int table, std::int64_t length, const at::Tensor& gradient, GradientSink& sink) {
  const at::Tensor by_row = gradient.view({-1, length, gradient.size(1)});
  sink.add_rows(table, at::arange(length, gradient.options().dtype(at::kLong)), by_row.sum(0, false, at::kFloat));
}

}  // namespace everstep::trainer
