#pragma once

#include <algorithm>
#include <cstdint>

// Vectors of 512 bits, for the wide_*.cpp of this room.
#ifdef __x86_64__
#include <immintrin.h>

// For functions that use them: the rest of the program runs on every x86-64.
#define EVERSTEP_WIDE __attribute__((target("avx512f")))

namespace everstep::trainer {

inline constexpr std::int64_t kWideLanes = 16;

// The first of a vector's lanes, all of them at most.
EVERSTEP_WIDE inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << std::clamp<std::int64_t>(count, 0, kWideLanes)) - 1U);
}

}  // namespace everstep::trainer
#endif
