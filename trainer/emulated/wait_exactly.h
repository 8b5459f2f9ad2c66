#pragma once

#include <chrono>
#include <thread>

namespace everstep::trainer {

// A sleep ends late by the time it takes to wake up. A device does not, so the last stretch is waited for awake.
inline void wait_exactly(std::chrono::nanoseconds duration) {
  constexpr std::chrono::microseconds kAwake{300};
  const auto end = std::chrono::steady_clock::now() + duration;
  if (duration > kAwake) std::this_thread::sleep_until(end - kAwake);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
}

}  // namespace everstep::trainer
