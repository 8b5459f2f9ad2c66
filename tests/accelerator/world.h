#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <random>

#include "tests/accelerator/clock.h"

namespace everstep::accelerator {

inline std::uint64_t random_number() {
  static std::mutex mutex;
  static std::random_device random;
  const std::lock_guard lock(mutex);
  return std::uint64_t{random()} << 32 | random();
}

// What this process knows to be over, on its own accelerator and on those of others.
class World {
 public:
  using Clocks = std::map<std::uint64_t, Clock>;  // by process

  std::uint64_t self() const { return self_; }

  Clocks with(const Clock& own) const {
    const std::lock_guard lock(mutex_);
    Clocks clocks = others_;
    clocks[self_].learn(own);
    return clocks;
  }

  void learn(const Clocks& clocks) {
    const std::lock_guard lock(mutex_);
    for (const auto& [process, clock] : clocks) {
      if (process != self_) others_[process].learn(clock);
    }
  }

 private:
  const std::uint64_t self_ = random_number();
  mutable std::mutex mutex_;
  Clocks others_;
};

inline World& world() {
  static auto* const made = new World;
  return *made;
}

}  // namespace everstep::accelerator
