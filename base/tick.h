#pragma once

#include <cstdint>

namespace everstep {

// Model time in nanoseconds. An integer, so that every worker computes the same schedule and the same estimate. Where
// only ratios matter (drawing a schedule with forward = 1, backward = 2) a tick is whatever unit the caller chose.
using Tick = std::int64_t;

inline constexpr Tick kTicksPerSecond = 1'000'000'000;
inline constexpr Tick kMillisecond = kTicksPerSecond / 1000;
inline constexpr Tick kMicrosecond = kTicksPerSecond / 1'000'000;

// The nearest tick; more than 52 days count as that, so that sums of many stay within 64 bits.
constexpr Tick ticks_of(double seconds) {
  constexpr double kLongest = 0x1p52;
  const double ticks = seconds * static_cast<double>(kTicksPerSecond);
  return static_cast<Tick>(ticks < kLongest ? ticks + 0.5 : kLongest);
}

constexpr double to_seconds(Tick ticks) { return static_cast<double>(ticks) / static_cast<double>(kTicksPerSecond); }

}  // namespace everstep
