#pragma once

#include <array>
#include <cstdint>

namespace everstep {

// Philox4x32-10 (Salmon et al., SC 2011): a pure function from (key, counter) to 128 random bits. There is no state, so
// a number belongs to what it is for (seed, window, minibatch, block, use) and not to who asked first.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 2> key, std::array<std::uint32_t, 4> counter) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t left = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t right = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(right >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(right),
               static_cast<std::uint32_t>(left >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(left)};
    key = {key[0] + 0x9E3779B9, key[1] + 0xBB67AE85};
  }
  return counter;
}

// A stream of numbers for one use: `stream` names the use, the index counts inside it.
class RandomStream {
 public:
  constexpr RandomStream(std::uint64_t seed, std::uint64_t stream) : seed_(seed), stream_(stream) {}

  constexpr std::uint64_t seed() const { return seed_; }
  constexpr std::uint64_t stream() const { return stream_; }

  constexpr std::uint64_t bits(std::uint64_t index) const {
    const auto words = philox({low(seed_), high(seed_)}, {low(index), high(index), low(stream_), high(stream_)});
    return (std::uint64_t{words[1]} << 32) | words[0];
  }

  // Uniform in [0, bound), bound > 0; the bias is below 2^-32 for bounds below 2^32.
  constexpr std::uint64_t below(std::uint64_t index, std::uint64_t bound) const { return bits(index) % bound; }

  // Uniform in [0, 1), a multiple of 2^-53.
  constexpr double uniform(std::uint64_t index) const { return static_cast<double>(bits(index) >> 11) * 0x1p-53; }

 private:
  static constexpr std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
  static constexpr std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }

  std::uint64_t seed_;
  std::uint64_t stream_;
};

}  // namespace everstep
