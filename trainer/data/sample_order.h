#pragma once

#include <array>
#include <cstdint>

#include "base/random.h"

namespace everstep::trainer {

// A random permutation of 0 … size − 1 that needs no memory: a swap-or-not shuffle (Hoang, Morris, Rogaway, CRYPTO
// 2012) keyed by a stream. In each round a random number pairs all values, and a coin per pair says whether its two
// change places. That works for every size, small ones too: no value ever lies outside, and all permutations are
// equally likely, even and odd ones. It uses two of the stream's indices, from 2^32 on; those below are free for the
// caller.
class Permutation {
 public:
  Permutation(RandomStream stream, std::int64_t size);  // 1 <= size < 2^62

  // Where `index` lands, 0 <= index < size.
  std::int64_t at(std::int64_t index) const;

 private:
  struct Round {
    std::uint64_t sum = 0;  // of the two of a pair, modulo size
    std::uint64_t coins = 0;
  };
  // What a round leaves of any preference is halved by the next. As many as the size has bits make all places equal,
  // as many again all pairs of places; the rest is what no statistic sees.
  static constexpr int kRounds = 24;
  static constexpr int kRoundsPerBit = 2;

  std::uint64_t size_;
  int rounds_;
  std::array<Round, kRounds + kRoundsPerBit * 62> round_{};
};

// The order in which training reads its samples: every epoch in an order of its own, each sample once. `number` counts
// over all epochs.
class SampleOrder {
 public:
  SampleOrder(std::uint64_t seed, std::int64_t samples);  // samples >= 1

  std::int64_t at(std::int64_t number) const;

 private:
  std::uint64_t seed_;
  std::int64_t samples_;
};

}  // namespace everstep::trainer
