#pragma once

#include <cstdint>
#include <optional>

#include <ATen/ATen.h>

// The CPU's kernels of the operators in ops.h, as the dispatcher calls them. They trust their arguments, as those of
// any device may: ops.h checks.
namespace everstep::trainer::cpu {

using at::Tensor;

void add_sums(const Tensor& sums, const Tensor& addend);
void add_fixed_point(const Tensor& sums, const Tensor& values, double limit, const Tensor& overflow);
void add_fixed_point_rows(const Tensor& sums, const Tensor& index, const Tensor& rows, const Tensor& limits,
                          const Tensor& overflow);
void adamw_trial(const Tensor& weights, const Tensor& master, const Tensor& first, const Tensor& second,
                 const Tensor& gradient, at::ArrayRef<double> constants);
void adamw(const Tensor& master, const Tensor& first, const Tensor& second, const Tensor& gradient,
           at::ArrayRef<double> constants);
void round_to_bf16(const Tensor& weights, const Tensor& master);
void sum_of_squares(const Tensor& sum, const Tensor& gradient);
void note_not_finite(const Tensor& flag, const Tensor& values);
void hash(const Tensor& hash, const Tensor& bytes);
void swap(const Tensor& left, const Tensor& right);
void multiply(const Tensor& result, const Tensor& left, const Tensor& right, const std::optional<Tensor>& bias);
void add_product(const Tensor& sums, const Tensor& left, const Tensor& right);
void attend(const Tensor& output, const Tensor& log_sums, const Tensor& query, const Tensor& key, const Tensor& value,
            std::int64_t length, std::int64_t heads, bool causal, const std::optional<Tensor>& mask);
void attend_backward(const Tensor& query_gradient, const Tensor& key_gradient, const Tensor& value_gradient,
                     const Tensor& output_gradient, const Tensor& query, const Tensor& key, const Tensor& value,
                     const Tensor& output, const Tensor& log_sums, std::int64_t length, std::int64_t heads, bool causal,
                     const std::optional<Tensor>& mask);
void gelu(const Tensor& value, const Tensor& input);
void gelu_backward(const Tensor& value, const Tensor& input_gradient, const Tensor& input,
                   const Tensor& output_gradient);
void dropout(const Tensor& result, const Tensor& values, std::int64_t seed, std::int64_t stream, std::int64_t dropped);
void cross_entropy(const Tensor& loss, const Tensor& log_probabilities, const Tensor& labels);
void cross_entropy_backward(const Tensor& gradient, const Tensor& log_probabilities, const Tensor& labels,
                            double weight);

}  // namespace everstep::trainer::cpu
