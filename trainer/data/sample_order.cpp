#include "trainer/data/sample_order.h"

#include <algorithm>
#include <bit>
#include <string>

#include "base/check.h"
#include "trainer/model/random_key.h"

namespace everstep::trainer {
namespace {

constexpr std::uint64_t kFirstIndex = std::uint64_t{1} << 32;

// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): as good as Philox for coins, and several times as fast. A coin is
// tossed in every round for every value that is asked for.
constexpr std::uint64_t split_mix(std::uint64_t key, std::uint64_t number) {
  std::uint64_t bits = key + (number + 1) * 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

}  // namespace

Permutation::Permutation(RandomStream stream, std::int64_t size)
    : size_(static_cast<std::uint64_t>(size)),
      rounds_(kRounds + kRoundsPerBit * static_cast<int>(std::bit_width(size_ - 1))) {
  EVERSTEP_CHECK(size >= 1 && size < (std::int64_t{1} << 62), "a permutation of " + std::to_string(size));
  const std::uint64_t sums = stream.bits(kFirstIndex);
  const std::uint64_t coins = stream.bits(kFirstIndex + 1);
  for (int i = 0; i < rounds_; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    round_[number] = {split_mix(sums, number) % size_, split_mix(coins, number)};
  }
}

std::int64_t Permutation::at(std::int64_t index) const {
  auto value = static_cast<std::uint64_t>(index);
  EVERSTEP_CHECK(index >= 0 && value < size_, "index " + std::to_string(index) + " of " + std::to_string(size_));
  for (int i = 0; i < rounds_; ++i) {
    const Round& round = round_[static_cast<std::size_t>(i)];
    const std::uint64_t partner = round.sum >= value ? round.sum - value : round.sum + size_ - value;
    const bool swaps = (split_mix(round.coins, std::max(value, partner)) >> 63) != 0;
    if (swaps) value = partner;
  }
  return static_cast<std::int64_t>(value);
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
