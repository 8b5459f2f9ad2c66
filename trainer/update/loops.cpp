#include "trainer/update/loops.h"

#include <algorithm>

#include "base/check.h"
#include "trainer/kernels/bf16.h"
#include "trainer/kernels/clones.h"
#include "trainer/kernels/finite.h"
#include "trainer/kernels/hash.h"
#include "trainer/kernels/ordered_sum.h"
#include "trainer/kernels/sums.h"

namespace everstep::trainer {
namespace {

template <typename Sum>
void add_each(std::span<Sum> sums, std::span<const Sum> addends) {
  EVERSTEP_CHECK(sums.size() == addends.size(), "sums of different sizes");
  const kernels::AddSums<Sum> add{sums.data(), addends.data()};
  for (std::int64_t i = 0; i < std::ssize(sums); ++i) add(i);
}

template <typename Sum>
EVERSTEP_HOST_DEVICE void step_each(const kernels::AdamWConstants& constants, float* __restrict master,
                                    float* __restrict first, float* __restrict second, Sum* __restrict sums,
                                    std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    kernels::adamw_step(constants, sums[i], first[i], second[i], master[i]);
  }
}

EVERSTEP_CLONES void step_floats(const kernels::AdamWConstants& constants, const AdamWState<float>& state) {
  step_each(constants, state.master, state.first, state.second, state.sums, state.count);
}

EVERSTEP_CLONES void step_integers(const kernels::AdamWConstants& constants, const AdamWState<std::int64_t>& state) {
  step_each(constants, state.master, state.first, state.second, state.sums, state.count);
}

template <typename Sum, typename Weight>
EVERSTEP_HOST_DEVICE void try_each(const kernels::AdamWConstants& constants, const float* __restrict master,
                                   const float* __restrict first, const float* __restrict second,
                                   const Sum* __restrict sums, Weight* __restrict weights, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    kernels::store(kernels::adamw_trial(constants, sums[i], first[i], second[i], master[i]), weights[i]);
  }
}

EVERSTEP_CLONES void try_floats(const kernels::AdamWConstants& c, const AdamWTrialState<float, float>& s) {
  try_each(c, s.master, s.first, s.second, s.sums, s.weights, s.count);
}

EVERSTEP_CLONES void try_floats(const kernels::AdamWConstants& c, const AdamWTrialState<float, kernels::Bf16>& s) {
  try_each(c, s.master, s.first, s.second, s.sums, s.weights, s.count);
}

EVERSTEP_CLONES void try_integers(const kernels::AdamWConstants& c, const AdamWTrialState<std::int64_t, float>& s) {
  try_each(c, s.master, s.first, s.second, s.sums, s.weights, s.count);
}

EVERSTEP_CLONES void try_integers(const kernels::AdamWConstants& c,
                                  const AdamWTrialState<std::int64_t, kernels::Bf16>& s) {
  try_each(c, s.master, s.first, s.second, s.sums, s.weights, s.count);
}

EVERSTEP_CLONES void round_each(const float* __restrict master, std::uint16_t* __restrict weights, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) weights[i] = kernels::to_bf16_bits(master[i]);
}

EVERSTEP_CLONES double add_squares(const float* sums, std::int64_t count) {
  return kernels::ordered_sum(kernels::SquareOf<float>{sums}, count);
}

EVERSTEP_CLONES double add_squares(const std::int64_t* sums, std::int64_t count) {
  return kernels::ordered_sum(kernels::SquareOf<std::int64_t>{sums}, count);
}

template <typename Bits>
bool none_from_infinity(std::span<const Bits> numbers) {
  Bits largest = 0;
  for (const Bits number : numbers) {
    largest = std::max<Bits>(largest, static_cast<Bits>(number & kernels::kMagnitude<Bits>));
  }
  return largest < kernels::kInfinity<Bits>;
}

}  // namespace

void add_all(std::span<float> sums, std::span<const float> addends) { add_each(sums, addends); }

void add_all(std::span<std::uint64_t> sums, std::span<const std::uint64_t> addends) { add_each(sums, addends); }

void adamw(const kernels::AdamWConstants& constants, const AdamWState<float>& state) { step_floats(constants, state); }

void adamw(const kernels::AdamWConstants& constants, const AdamWState<std::int64_t>& state) {
  step_integers(constants, state);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, float>& state) {
  try_floats(constants, state);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<float, kernels::Bf16>& state) {
  try_floats(constants, state);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, float>& state) {
  try_integers(constants, state);
}

void adamw_trial(const kernels::AdamWConstants& constants, const AdamWTrialState<std::int64_t, kernels::Bf16>& state) {
  try_integers(constants, state);
}

void round_to_bf16(std::span<const float> master, std::span<std::uint16_t> weights) {
  EVERSTEP_CHECK(master.size() == weights.size(), "as many weights as the master has");
  round_each(master.data(), weights.data(), std::ssize(master));
}

double sum_of_squares(std::span<const float> sums) { return add_squares(sums.data(), std::ssize(sums)); }

double sum_of_squares(std::span<const std::int64_t> sums) { return add_squares(sums.data(), std::ssize(sums)); }

bool all_finite(std::span<const std::uint32_t> numbers) { return none_from_infinity(numbers); }

bool all_finite(std::span<const std::uint16_t> numbers) { return none_from_infinity(numbers); }

std::uint64_t tree_hash(std::span<const std::byte> bytes) {
  const kernels::HashedBytes hashed{reinterpret_cast<const std::uint8_t*>(bytes.data()), std::ssize(bytes)};
  std::uint64_t hash = kernels::hash_of_length(hashed.size);
  for (std::int64_t chunk = 0; chunk < kernels::hash_chunks(hashed.size); ++chunk) {
    hash += kernels::chunk_share(hashed.chunk_part(chunk, 0, 1), chunk);
  }
  return hash;
}

void swap_bytes(std::span<std::byte> left, std::span<std::byte> right) {
  EVERSTEP_CHECK(left.size() == right.size(), "what is swapped has one size");
  std::swap_ranges(left.begin(), left.end(), right.begin());
}

}  // namespace everstep::trainer
