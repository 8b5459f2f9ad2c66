#pragma once

#include <cstdint>
#include <optional>

#include <ATen/ATen.h>

#include "trainer/kernels/adamw.h"

// Every loop over numbers that is not LibTorch's own is an operator `everstep::…` of LibTorch's dispatcher, so that a
// block's code runs on any device that has kernels for them: the CPU's are here, those of CUDA in trainer/cuda; both
// are the functors of trainer/kernels, and give the same bits. Products of matrices differ: on a GPU they are
// LibTorch's, and attend() is not asked for there. The functions below check the arguments and call them.
//
// An operator returns nothing: what it makes goes into an argument. None reads a value back to the host. So a device
// may run them whenever its stream gets there. All tensors of a call are on one device, and contiguous if nothing else
// is said; c10::Error if they are not, or have another type or size than said here.
namespace everstep::trainer::ops {

// sums += addend: float, or int64 that wraps.
void add_sums(const at::Tensor& sums, const at::Tensor& addend);

// sums (int64) += round-half-even(values (float) · 2^48). A value that is not finite or not below `limit` in magnitude
// adds nothing and sets `overflow` (uint8, one element) to 1; nothing here clears it.
void add_fixed_point(const at::Tensor& sums, const at::Tensor& values, double limit, const at::Tensor& overflow);

// The same for row i of `rows` [n, width] and row index[i] (int64) of `sums`, with limits[i] (float); no index twice.
void add_fixed_point_rows(const at::Tensor& sums, const at::Tensor& index, const at::Tensor& rows,
                          const at::Tensor& limits, const at::Tensor& overflow);

// One AdamW step on fp32 state, with a gradient of floats or fixed-point sums; leaves the gradient zero.
void adamw(const at::Tensor& master, const at::Tensor& first, const at::Tensor& second, const at::Tensor& gradient,
           const kernels::AdamWConstants& constants);

// weights (float or bf16) = what that step would make of the master, or the master itself where that is no number;
// changes nothing else.
void adamw_trial(const at::Tensor& weights, const at::Tensor& master, const at::Tensor& first, const at::Tensor& second,
                 const at::Tensor& gradient, const kernels::AdamWConstants& constants);

// weights (bf16) = master (fp32), to nearest, ties to even.
void round_to_bf16(const at::Tensor& weights, const at::Tensor& master);

// sum (float64, one element) = the sum of squares of the gradient (float or fixed point), in the order of
// kernels/ordered_sum.h.
void sum_of_squares(const at::Tensor& sum, const at::Tensor& gradient);

// Sets `flag` (uint8, one element) to 1 if any value (fp32 or bf16) is Inf or NaN; nothing here clears it.
void note_not_finite(const at::Tensor& flag, const at::Tensor& values);

// hash (int64, one element) = that of kernels/hash.h over the bytes of a tensor of any type.
void hash(const at::Tensor& hash, const at::Tensor& bytes);

// Exchanges the bytes of two tensors of one size.
void swap(const at::Tensor& left, const at::Tensor& right);

// result = left · right, or bias + left · right with a bias for each column: fp32 or bf16. The factors may be
// transposed: each is dense along its rows or along its columns.
void multiply(const at::Tensor& result, const at::Tensor& left, const at::Tensor& right,
              const std::optional<at::Tensor>& bias);

// sums += left · right, the same in fp32.
void add_product(const at::Tensor& sums, const at::Tensor& left, const at::Tensor& right);

// Attention in fp32 where the CPU has_wide_product(); see Attention in layers.h. All tensors but the mask and the sums
// are [tokens, hidden], their rows dense and any distance apart: one for query, key and value, one for their gradients.
struct AttentionHeads {
  std::int64_t length = 0;  // tokens of a sequence
  std::int64_t heads = 0;
  bool causal = false;
  std::optional<at::Tensor> mask;  // [sequences, 1, 1, length]
};

void attend(const at::Tensor& output, const at::Tensor& log_sums, const at::Tensor& query, const at::Tensor& key,
            const at::Tensor& value, const AttentionHeads& heads);
void attend_backward(const at::Tensor& query_gradient, const at::Tensor& key_gradient, const at::Tensor& value_gradient,
                     const at::Tensor& output_gradient, const at::Tensor& query, const at::Tensor& key,
                     const at::Tensor& value, const at::Tensor& output, const at::Tensor& log_sums,
                     const AttentionHeads& heads);

// GPT-2's GELU (gelu.h) of fp32 or bf16, and with its gradient.
void gelu(const at::Tensor& value, const at::Tensor& input);
void gelu_backward(const at::Tensor& value, const at::Tensor& input_gradient, const at::Tensor& input,
                   const at::Tensor& output_gradient);

// `dropped` of 65536 elements (fp32 or bf16) become zero, by the half words of philox (dropout.h); the others grow.
void dropout(const at::Tensor& result, const at::Tensor& values, std::uint64_t seed, std::uint64_t stream,
             std::int64_t dropped);

// loss (fp32, a scalar) = the mean cross entropy of the rows whose label (int64) is not kIgnoredLabel, 0 if there are
// none; and the gradient (fp32) of the logits, where the loss counts with `weight`. `log_probabilities` is fp32 [rows,
// classes]. Labels are known to be below `classes` or kIgnoredLabel: see to_tensors().
void cross_entropy(const at::Tensor& loss, const at::Tensor& log_probabilities, const at::Tensor& labels);
void cross_entropy_backward(const at::Tensor& gradient, const at::Tensor& log_probabilities, const at::Tensor& labels,
                            double weight);

}  // namespace everstep::trainer::ops
