#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "trainer/kernels/adamw.h"

// The loops of an update as the CPU runs them: the functors of trainer/kernels in vector code. The same bits on every
// x86-64.
namespace everstep::trainer {

// sums[i] += addends[i]; both have the same size. Integers wrap.
void add_all(std::span<float> sums, std::span<const float> addends);
void add_all(std::span<std::uint64_t> sums, std::span<const std::uint64_t> addends);

// The state of some weights and the sums of their gradient, which do not overlap; Sum is float or std::int64_t.
template <typename Sum>
struct AdamWState {
  float* master = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  Sum* sums = nullptr;
  std::int64_t count = 0;
};

// Takes the step and leaves the sums zero.
void adamw(const kernels::AdamWConstants& constants, const AdamWState<float>& state);
void adamw(const kernels::AdamWConstants& constants, const AdamWState<std::int64_t>& state);

// What the step would make of the weights, as floats or as the bits of bf16; of a weight for which that is no number:
// the weight. The state is left as it is.
template <typename Sum, typename Weight>
struct AdamWTrialState {
  const float* master = nullptr;
  const float* first = nullptr;
  const float* second = nullptr;
  const Sum* sums = nullptr;
  Weight* weights = nullptr;
  std::int64_t count = 0;
};

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, float>& state);
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, kernels::Bf16>& state);
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, float>& state);
void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, kernels::Bf16>& state);

// The nearest bf16, ties to even, as its bits.
void round_to_bf16(std::span<const float> master, std::span<std::uint16_t> weights);

// In double precision and in the order of kernels/ordered_sum.h. Not finite if the gradient is not.
double sum_of_squares(std::span<const float> sums);
double sum_of_squares(std::span<const std::int64_t> sums);

// Whether none of the numbers (fp32, bf16, as their bits) is Inf or NaN.
bool all_finite(std::span<const std::uint32_t> numbers);
bool all_finite(std::span<const std::uint16_t> numbers);

// That of kernels/hash.h.
std::uint64_t tree_hash(std::span<const std::byte> bytes);

void swap_bytes(std::span<std::byte> left, std::span<std::byte> right);

}  // namespace everstep::trainer
