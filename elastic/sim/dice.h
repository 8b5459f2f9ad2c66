#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/tick.h"

namespace everstep::elastic::sim {

// Random numbers of one seed, one after the other.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t use) : stream_(seed, use) {}

  std::uint64_t bits() { return stream_.bits(next_++); }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(bound));
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t chances) { return below(chances) == 0; }
  bool with(double probability) { return stream_.uniform(next_++) < probability; }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

}  // namespace everstep::elastic::sim
