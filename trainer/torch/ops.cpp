#include "trainer/torch/ops.h"

#include <array>
#include <initializer_list>

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include "trainer/torch/cpu_ops.h"

namespace everstep::trainer::ops {
namespace {

template <typename Signature>
auto find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

void check(const at::Tensor& tensor, at::ScalarType type, const char* name) {
  TORCH_CHECK(tensor.is_contiguous() && tensor.scalar_type() == type, name, " must be a contiguous tensor of ", type,
              ", not of ", tensor.scalar_type());
}

void check_one(const at::Tensor& tensor, at::ScalarType type, const char* name) {
  check(tensor, type, name);
  TORCH_CHECK(tensor.numel() == 1, name, " must have one element, not ", tensor.numel());
}

void check_same_size(const at::Tensor& left, const at::Tensor& right) {
  TORCH_CHECK(left.numel() == right.numel(), "tensors of ", left.numel(), " and ", right.numel(), " elements");
}

// The type that `tensor` has, if it is one of two.
at::ScalarType either(const at::Tensor& tensor, at::ScalarType one, at::ScalarType other) {
  return tensor.scalar_type() == other ? other : one;
}

void check_sums(const at::Tensor& sums) { check(sums, either(sums, at::kFloat, at::kLong), "sums"); }

// Tensors of activations: fp32 or bf16, all of one type and size.
void check_alike(std::initializer_list<at::Tensor> tensors) {
  const at::Tensor& first = *tensors.begin();
  for (const at::Tensor& tensor : tensors) {
    check(tensor, either(first, at::kFloat, at::kBFloat16), "an activation");
    check_same_size(first, tensor);
  }
}

// One factor of a product: of the result's type, and dense along its rows or its columns.
void check_factor(const at::Tensor& factor, at::ScalarType type) {
  TORCH_CHECK(factor.dim() == 2 && factor.scalar_type() == type && (factor.stride(0) == 1 || factor.stride(1) == 1),
              "a factor must be a matrix of ", type, " that is dense along its rows or its columns");
}

void check_product(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right) {
  check_factor(left, result.scalar_type());
  check_factor(right, result.scalar_type());
  TORCH_CHECK(left.size(1) == right.size(0), "factors that fit together");
  TORCH_CHECK(result.dim() == 2 && result.size(0) == left.size(0) && result.size(1) == right.size(1),
              "a result of the product's size");
}

// Tensors of heads side by side: of one size and with one distance between rows.
void check_heads(std::initializer_list<at::Tensor> tensors, const AttentionHeads& heads) {
  const at::Tensor& first = *tensors.begin();
  TORCH_CHECK(first.dim() == 2 && first.size(0) % heads.length == 0 && first.size(1) % heads.heads == 0,
              "whole sequences and heads");
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.scalar_type() == at::kFloat && tensor.sizes() == first.sizes() && tensor.stride(1) == 1 &&
                    tensor.stride(0) == first.stride(0),
                "heads must be of floats, with dense rows that are as far apart everywhere");
  }
}

void check_attention(const at::Tensor& log_sums, const at::Tensor& query, const AttentionHeads& heads) {
  check(log_sums, at::kFloat, "log_sums");
  TORCH_CHECK(log_sums.numel() == query.size(0) * heads.heads, "a sum for each token of each head");
  if (!heads.mask) return;
  check(*heads.mask, at::kFloat, "the mask");
  TORCH_CHECK(heads.mask->numel() == query.size(0), "a mask for each token");
}

void check_entropy(const at::Tensor& log_probabilities, const at::Tensor& labels) {
  check(log_probabilities, at::kFloat, "log_probabilities");
  check(labels, at::kLong, "labels");
  TORCH_CHECK(log_probabilities.dim() == 2 && log_probabilities.size(0) == labels.numel(), "a label for each row");
}

std::array<double, kernels::kAdamWConstants> wide(const kernels::AdamWConstants& c) {
  return {c.clip_scale, c.beta1,     c.one_minus_beta1,     c.beta2,  c.one_minus_beta2,
          c.keep,       c.step_size, c.root_of_correction2, c.epsilon};
}

}  // namespace

void add_sums(const at::Tensor& sums, const at::Tensor& addend) {
  check_sums(sums);
  check(addend, sums.scalar_type(), "the addend");
  check_same_size(sums, addend);
  static const auto op = find<decltype(cpu::add_sums)>("everstep::add_sums_");
  op.call(sums, addend);
}

void add_fixed_point(const at::Tensor& sums, const at::Tensor& values, double limit, const at::Tensor& overflow) {
  check(sums, at::kLong, "sums");
  check(values, at::kFloat, "values");
  check_same_size(sums, values);
  check_one(overflow, at::kByte, "overflow");
  static const auto op = find<decltype(cpu::add_fixed_point)>("everstep::add_fixed_point_");
  op.call(sums, values, limit, overflow);
}

void add_fixed_point_rows(const at::Tensor& sums, const at::Tensor& index, const at::Tensor& rows,
                          const at::Tensor& limits, const at::Tensor& overflow) {
  check(sums, at::kLong, "sums");
  check(index, at::kLong, "index");
  check(rows, at::kFloat, "rows");
  check(limits, at::kFloat, "limits");
  check_same_size(index, limits);
  check_one(overflow, at::kByte, "overflow");
  TORCH_CHECK(sums.dim() == 2 && rows.dim() == 2 && sums.size(1) == rows.size(1) && rows.size(0) == index.numel(),
              "rows must be as wide as sums, and as many as index");
  static const auto op = find<decltype(cpu::add_fixed_point_rows)>("everstep::add_fixed_point_rows_");
  op.call(sums, index, rows, limits, overflow);
}

void adamw(const at::Tensor& master, const at::Tensor& first, const at::Tensor& second, const at::Tensor& gradient,
           const kernels::AdamWConstants& constants) {
  check_sums(gradient);
  for (const at::Tensor& state : {master, first, second}) {
    check(state, at::kFloat, "the state");
    check_same_size(state, gradient);
  }
  static const auto op = find<decltype(cpu::adamw)>("everstep::adamw_");
  op.call(master, first, second, gradient, wide(constants));
}

void adamw_trial(const at::Tensor& weights, const at::Tensor& master, const at::Tensor& first, const at::Tensor& second,
                 const at::Tensor& gradient, const kernels::AdamWConstants& constants) {
  check_sums(gradient);
  for (const at::Tensor& state : {master, first, second}) {
    check(state, at::kFloat, "the state");
    check_same_size(state, gradient);
  }
  check(weights, either(weights, at::kFloat, at::kBFloat16), "weights");
  check_same_size(weights, gradient);
  static const auto op = find<decltype(cpu::adamw_trial)>("everstep::adamw_trial_");
  op.call(weights, master, first, second, gradient, wide(constants));
}

void round_to_bf16(const at::Tensor& weights, const at::Tensor& master) {
  check(weights, at::kBFloat16, "weights");
  check(master, at::kFloat, "the master");
  check_same_size(weights, master);
  static const auto op = find<decltype(cpu::round_to_bf16)>("everstep::round_to_bf16_");
  op.call(weights, master);
}

void sum_of_squares(const at::Tensor& sum, const at::Tensor& gradient) {
  check_one(sum, at::kDouble, "the sum");
  check_sums(gradient);
  static const auto op = find<decltype(cpu::sum_of_squares)>("everstep::sum_of_squares_");
  op.call(sum, gradient);
}

void note_not_finite(const at::Tensor& flag, const at::Tensor& values) {
  check_one(flag, at::kByte, "the flag");
  check(values, either(values, at::kFloat, at::kBFloat16), "values");
  static const auto op = find<decltype(cpu::note_not_finite)>("everstep::note_not_finite_");
  op.call(flag, values);
}

void hash(const at::Tensor& hash, const at::Tensor& bytes) {
  check_one(hash, at::kLong, "the hash");
  check(bytes, bytes.scalar_type(), "bytes");
  static const auto op = find<decltype(cpu::hash)>("everstep::hash_");
  op.call(hash, bytes);
}

void swap(const at::Tensor& left, const at::Tensor& right) {
  check(left, left.scalar_type(), "left");
  check(right, left.scalar_type(), "right");
  check_same_size(left, right);
  static const auto op = find<decltype(cpu::swap)>("everstep::swap_");
  op.call(left, right);
}

void multiply(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right,
              const std::optional<at::Tensor>& bias) {
  check(result, either(result, at::kFloat, at::kBFloat16), "the result");
  check_product(result, left, right);
  if (bias) {
    check(*bias, result.scalar_type(), "the bias");
    TORCH_CHECK(bias->numel() == right.size(1), "a bias for each column");
  }
  static const auto op = find<decltype(cpu::multiply)>("everstep::multiply_");
  op.call(result, left, right, bias);
}

void add_product(const at::Tensor& sums, const at::Tensor& left, const at::Tensor& right) {
  check(sums, at::kFloat, "sums");
  check_product(sums, left, right);
  static const auto op = find<decltype(cpu::add_product)>("everstep::add_product_");
  op.call(sums, left, right);
}

void attend(const at::Tensor& output, const at::Tensor& log_sums, const at::Tensor& query, const at::Tensor& key,
            const at::Tensor& value, const AttentionHeads& heads) {
  check_heads({query, key, value}, heads);
  check_heads({output}, heads);
  check_same_size(output, query);
  check_attention(log_sums, query, heads);
  static const auto op = find<decltype(cpu::attend)>("everstep::attend_");
  op.call(output, log_sums, query, key, value, heads.length, heads.heads, heads.causal, heads.mask);
}

void attend_backward(const at::Tensor& query_gradient, const at::Tensor& key_gradient, const at::Tensor& value_gradient,
                     const at::Tensor& output_gradient, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const at::Tensor& output, const at::Tensor& log_sums,
                     const AttentionHeads& heads) {
  check_heads({query_gradient, key_gradient, value_gradient}, heads);
  check_heads({query, key, value}, heads);
  check_heads({output, output_gradient}, heads);
  check_same_size(output, query);
  check_same_size(query_gradient, query);
  check_attention(log_sums, query, heads);
  static const auto op = find<decltype(cpu::attend_backward)>("everstep::attend_backward_");
  op.call(query_gradient, key_gradient, value_gradient, output_gradient, query, key, value, output, log_sums,
          heads.length, heads.heads, heads.causal, heads.mask);
}

void gelu(const at::Tensor& value, const at::Tensor& input) {
  check_alike({value, input});
  static const auto op = find<decltype(cpu::gelu)>("everstep::gelu_");
  op.call(value, input);
}

void gelu_backward(const at::Tensor& value, const at::Tensor& input_gradient, const at::Tensor& input,
                   const at::Tensor& output_gradient) {
  check_alike({value, input_gradient, input, output_gradient});
  static const auto op = find<decltype(cpu::gelu_backward)>("everstep::gelu_backward_");
  op.call(value, input_gradient, input, output_gradient);
}

void dropout(const at::Tensor& result, const at::Tensor& values, std::uint64_t seed, std::uint64_t stream,
             std::int64_t dropped) {
  check_alike({result, values});
  static const auto op = find<decltype(cpu::dropout)>("everstep::dropout_");
  op.call(result, values, static_cast<std::int64_t>(seed), static_cast<std::int64_t>(stream), dropped);
}

void cross_entropy(const at::Tensor& loss, const at::Tensor& log_probabilities, const at::Tensor& labels) {
  check_one(loss, at::kFloat, "the loss");
  check_entropy(log_probabilities, labels);
  static const auto op = find<decltype(cpu::cross_entropy)>("everstep::cross_entropy_");
  op.call(loss, log_probabilities, labels);
}

void cross_entropy_backward(const at::Tensor& gradient, const at::Tensor& log_probabilities, const at::Tensor& labels,
                            double weight) {
  check(gradient, at::kFloat, "the gradient");
  check_entropy(log_probabilities, labels);
  check_same_size(gradient, log_probabilities);
  static const auto op = find<decltype(cpu::cross_entropy_backward)>("everstep::cross_entropy_backward_");
  op.call(gradient, log_probabilities, labels, weight);
}

TORCH_LIBRARY(everstep, library) {
  library.def("add_sums_(Tensor(a!) sums, Tensor addend) -> ()");
  library.def("add_fixed_point_(Tensor(a!) sums, Tensor values, float limit, Tensor(b!) overflow) -> ()");
  library.def(
      "add_fixed_point_rows_(Tensor(a!) sums, Tensor index, Tensor rows, Tensor limits, Tensor(b!) overflow) -> ()");
  library.def(
      "adamw_(Tensor(a!) master, Tensor(b!) first, Tensor(c!) second, Tensor(d!) gradient, float[] constants) -> ()");
  library.def(
      "adamw_trial_(Tensor(a!) weights, Tensor master, Tensor first, Tensor second, Tensor gradient, float[] "
      "constants) -> ()");
  library.def("round_to_bf16_(Tensor(a!) weights, Tensor master) -> ()");
  library.def("sum_of_squares_(Tensor(a!) sum, Tensor gradient) -> ()");
  library.def("note_not_finite_(Tensor(a!) flag, Tensor values) -> ()");
  library.def("hash_(Tensor(a!) hash, Tensor bytes) -> ()");
  library.def("swap_(Tensor(a!) a, Tensor(b!) b) -> ()");
  library.def("multiply_(Tensor(a!) result, Tensor left, Tensor right, Tensor? bias) -> ()");
  library.def("add_product_(Tensor(a!) sums, Tensor left, Tensor right) -> ()");
  library.def(
      "attend_(Tensor(a!) output, Tensor(b!) log_sums, Tensor query, Tensor key, Tensor value, int length, int heads, "
      "bool causal, Tensor? mask) -> ()");
  library.def(
      "attend_backward_(Tensor(a!) query_gradient, Tensor(b!) key_gradient, Tensor(c!) value_gradient, "
      "Tensor output_gradient, Tensor query, Tensor key, Tensor value, Tensor output, Tensor log_sums, int length, "
      "int heads, bool causal, Tensor? mask) -> ()");
  library.def("gelu_(Tensor(a!) value, Tensor input) -> ()");
  library.def(
      "gelu_backward_(Tensor(a!) value, Tensor(b!) input_gradient, Tensor input, Tensor output_gradient) -> ()");
  library.def("dropout_(Tensor(a!) result, Tensor values, int seed, int stream, int dropped) -> ()");
  library.def("cross_entropy_(Tensor(a!) loss, Tensor log_probabilities, Tensor labels) -> ()");
  library.def(
      "cross_entropy_backward_(Tensor(a!) gradient, Tensor log_probabilities, Tensor labels, float weight) -> ()");
}

TORCH_LIBRARY_IMPL(everstep, CPU, library) {
  library.impl("add_sums_", &cpu::add_sums);
  library.impl("add_fixed_point_", &cpu::add_fixed_point);
  library.impl("add_fixed_point_rows_", &cpu::add_fixed_point_rows);
  library.impl("adamw_", &cpu::adamw);
  library.impl("adamw_trial_", &cpu::adamw_trial);
  library.impl("round_to_bf16_", &cpu::round_to_bf16);
  library.impl("sum_of_squares_", &cpu::sum_of_squares);
  library.impl("note_not_finite_", &cpu::note_not_finite);
  library.impl("hash_", &cpu::hash);
  library.impl("swap_", &cpu::swap);
  library.impl("multiply_", &cpu::multiply);
  library.impl("add_product_", &cpu::add_product);
  library.impl("attend_", &cpu::attend);
  library.impl("attend_backward_", &cpu::attend_backward);
  library.impl("gelu_", &cpu::gelu);
  library.impl("gelu_backward_", &cpu::gelu_backward);
  library.impl("dropout_", &cpu::dropout);
  library.impl("cross_entropy_", &cpu::cross_entropy);
  library.impl("cross_entropy_backward_", &cpu::cross_entropy_backward);
}

}  // namespace everstep::trainer::ops
