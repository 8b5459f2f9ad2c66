#include "trainer/torch/layers.h"

#include <algorithm>
#include <tuple>

namespace everstep::trainer {
namespace {

struct LabelledRow {
  std::int64_t row = 0;
  std::int64_t label = 0;
};

std::vector<LabelledRow> labelled_rows(const at::Tensor& labels, std::int64_t classes) {
  std::vector<LabelledRow> rows;
  const auto label_of = labels.accessor<std::int64_t, 1>();
  for (std::int64_t row = 0; row < labels.numel(); ++row) {
    const std::int64_t label = label_of[row];
    if (label == kIgnoredLabel) continue;
    TORCH_CHECK_INDEX(label >= 0 && label < classes, "label ", label, " is not below ", classes);
    rows.push_back({row, label});
  }
  return rows;
}

}  // namespace

at::Tensor Dense::forward(const Tensors& weights, const at::Tensor& input) const {
  const at::Tensor& stored = weights[weight];
  return at::addmm(weights[weight + 1], input, order == MatrixOrder::kInputOutput ? stored : stored.t());
}

at::Tensor Dense::input_gradient(const Tensors& weights, const at::Tensor& output_gradient) const {
  const at::Tensor& stored = weights[weight];
  return output_gradient.mm(order == MatrixOrder::kInputOutput ? stored.t() : stored);
}

void Dense::add_gradients(const at::Tensor& input, const at::Tensor& output_gradient, GradientSink& sink) const {
  sink.add(weight + 1, output_gradient.sum(0, false, at::kFloat));
  if (order == MatrixOrder::kInputOutput) {
    sink.add_product(weight, input.t(), output_gradient);
  } else {
    sink.add_product(weight, output_gradient.t(), input);
  }
}

at::Tensor Dense::backward(const Tensors& weights, const at::Tensor& input, const at::Tensor& output_gradient,
                           GradientSink& sink) const {
  add_gradients(input, output_gradient, sink);
  return input_gradient(weights, output_gradient);
}

Norm::Output Norm::forward(const Tensors& weights, const at::Tensor& input) const {
  auto [value, mean, inverse_deviation] =
      at::native_layer_norm(input, {input.size(1)}, weights[weight], weights[weight + 1], epsilon);
  return {std::move(value), std::move(mean), std::move(inverse_deviation)};
}

at::Tensor Norm::backward(const Tensors& weights, const at::Tensor& input, const at::Tensor& mean,
                          const at::Tensor& inverse_deviation, const at::Tensor& output_gradient,
                          GradientSink& sink) const {
  auto [input_gradient, weight_gradient, bias_gradient] =
      at::native_layer_norm_backward(output_gradient, input, {input.size(1)}, mean, inverse_deviation, weights[weight],
                                     weights[weight + 1], {true, true, true});
  sink.add(weight, weight_gradient);
  sink.add(weight + 1, bias_gradient);
  return input_gradient;
}

Attention attention_of(const BlockCall& call) {
  const bool causal = call.model.shape.family == scheduler::ModelFamily::kGpt;
  std::optional<at::Tensor> mask;
  if (!causal && call.batch.attention_mask.defined()) mask = call.batch.attention_mask;
  return {call.batch.tokens.size(1), call.model.shape.heads, causal, std::move(mask)};
}

// [tokens, hidden] as [sequences, heads, length, hidden / heads], and back; no copy either way.
at::Tensor Attention::by_head(const at::Tensor& activations) const {
  const std::int64_t sequences = activations.size(0) / length;
  return activations.view({sequences, length, heads, activations.size(1) / heads}).transpose(1, 2);
}

at::Tensor Attention::by_token(const at::Tensor& activations) const {
  return activations.transpose(1, 2).reshape({activations.size(0) * length, heads * activations.size(3)});
}

Attention::Output Attention::forward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) const {
  auto [output, log_sum] =
      at::_scaled_dot_product_flash_attention_for_cpu(by_head(query), by_head(key), by_head(value), 0.0, causal, mask);
  return {by_token(output), std::move(log_sum)};
}

Attention::Gradients Attention::backward(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                                         const Output& output, const at::Tensor& output_gradient) const {
  auto [query_gradient, key_gradient, value_gradient] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
      by_head(output_gradient), by_head(query), by_head(key), by_head(value), by_head(output.value), output.log_sum,
      0.0, causal, mask);
  return {by_token(query_gradient), by_token(key_gradient), by_token(value_gradient)};
}

CrossEntropy cross_entropy(const at::Tensor& logits, const at::Tensor& labels) {
  const at::Tensor log_probabilities = at::_log_softmax(logits.to(at::kFloat), 1, false);
  const auto rows = log_probabilities.accessor<float, 2>();
  double sum = 0;
  std::int64_t count = 0;
  for (const auto& [row, label] : labelled_rows(labels, log_probabilities.size(1))) {
    sum -= rows[row][label];
    ++count;
  }
  const double loss = count == 0 ? 0 : sum / static_cast<double>(count);
  return {at::scalar_tensor(loss, at::kFloat), log_probabilities};
}

at::Tensor cross_entropy_backward(const at::Tensor& log_probabilities, const at::Tensor& labels,
                                  const at::Tensor& weight, at::ScalarType type) {
  const std::vector<LabelledRow> labelled = labelled_rows(labels, log_probabilities.size(1));
  at::Tensor gradient = at::exp(log_probabilities);
  if (std::ssize(labelled) != labels.numel()) gradient.mul_(labels.ne(kIgnoredLabel).unsqueeze(1));
  auto rows = gradient.accessor<float, 2>();
  for (const auto& [row, label] : labelled) rows[row][label] -= 1;
  const auto count = static_cast<double>(std::max<std::size_t>(1, labelled.size()));
  return gradient.mul_(weight.item<double>() / count).to(type);
}

void add_lookup_gradient(int table, const at::Tensor& index, const at::Tensor& gradient, GradientSink& sink) {
  const auto [distinct, place, counts] = at::_unique2(index, true, true, false);
  sink.add_rows(table, distinct,
                at::embedding_dense_backward(gradient.to(at::kFloat), place, distinct.numel(), -1, false));
}

void add_position_gradient(int table, std::int64_t length, const at::Tensor& gradient, GradientSink& sink) {
  const at::Tensor by_row = gradient.view({-1, length, gradient.size(1)});
  sink.add_rows(table, at::arange(length, at::kLong), by_row.sum(0, false, at::kFloat));
}

}  // namespace everstep::trainer
