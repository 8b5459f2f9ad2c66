#include "trainer/data/sample_order.h"

#include <bit>
#include <string>

#include "base/check.h"
#include "trainer/random_key.h"

namespace everstep::trainer {
namespace {

// Four give a good permutation when the round function is random; six make halves of one or two bits good too.
constexpr std::uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(RandomStream stream, std::int64_t size)
    : stream_(stream),
      size_(static_cast<std::uint64_t>(size)),
      half_bits_(static_cast<int>(std::bit_width(size_ - 1) + 1) / 2) {
  EVERSTEP_CHECK(size >= 1 && size < (std::int64_t{1} << 62), "a permutation of " + std::to_string(size));
}

std::int64_t Permutation::at(std::int64_t index) const {
  EVERSTEP_CHECK(index >= 0 && static_cast<std::uint64_t>(index) < size_,
                 "index " + std::to_string(index) + " of " + std::to_string(size_));
  // The network permutes up to four times as many values as there are samples, so few steps lead back inside.
  std::uint64_t value = scramble(static_cast<std::uint64_t>(index));
  while (value >= size_) value = scramble(value);
  return static_cast<std::int64_t>(value);
}

std::uint64_t Permutation::scramble(std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_;
  std::uint64_t right = value & mask;
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    const std::uint64_t mixed = left ^ (stream_.bits((round << 32) | right) & mask);
    left = right;
    right = mixed;
  }
  return (left << half_bits_) | right;
}

SampleOrder::SampleOrder(std::uint64_t seed, std::int64_t samples) : seed_(seed), samples_(samples) {
  EVERSTEP_CHECK(samples >= 1, "an order of no samples");
}

std::int64_t SampleOrder::at(std::int64_t number) const {
  EVERSTEP_CHECK(number >= 0, "a negative sample number");
  const std::int64_t epoch = number / samples_;
  return Permutation(random_stream(seed_, RandomUse::kSampleOrder, 0, epoch), samples_).at(number % samples_);
}

}  // namespace everstep::trainer
