#pragma once

#include <cstdint>

#include "base/random.h"

namespace everstep::trainer {

// A random permutation of 0 … size − 1 that needs no memory: a Feistel network keyed by a stream, walked until it lands
// inside. It uses the stream's indices from 2^32 on; those below are free for the caller.
class Permutation {
 public:
  Permutation(RandomStream stream, std::int64_t size);  // 1 <= size < 2^62

  // Where `index` lands, 0 <= index < size.
  std::int64_t at(std::int64_t index) const;

 private:
  std::uint64_t scramble(std::uint64_t value) const;

  RandomStream stream_;
  std::uint64_t size_;
  int half_bits_;
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
