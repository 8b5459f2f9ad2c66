#pragma once

#include "trainer/kernels/bf16.h"

namespace everstep::trainer::kernels {

// base/random.h's philox(seed, {counter, stream}), in a form that nvcc takes.
struct Philox {
  std::uint32_t word[4];

  EVERSTEP_HOST_DEVICE Philox(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter)
      : word{static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32),
             static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)} {
    auto key_low = static_cast<std::uint32_t>(seed);
    auto key_high = static_cast<std::uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t left = std::uint64_t{0xD2511F53} * word[0];
      const std::uint64_t right = std::uint64_t{0xCD9E8D57} * word[2];
      word[0] = static_cast<std::uint32_t>(right >> 32) ^ word[1] ^ key_low;
      word[1] = static_cast<std::uint32_t>(right);
      word[2] = static_cast<std::uint32_t>(left >> 32) ^ word[3] ^ key_high;
      word[3] = static_cast<std::uint32_t>(left);
      key_low += 0x9E3779B9;
      key_high += 0xBB67AE85;
    }
  }

  // Half word [0, 8), the low half of a word first.
  EVERSTEP_HOST_DEVICE std::uint32_t half_word(int index) const {
    return index % 2 == 0 ? word[index / 2] & 0xFFFFU : word[index / 2] >> 16;
  }
};

inline constexpr int kHalfWords = 8;  // of one call of philox

// What is left grows by what was lost; `dropped` of 65536 are lost.
EVERSTEP_HOST_DEVICE float dropout_scale(std::uint32_t dropped) {
  return 65536.0F / (65536.0F - static_cast<float>(dropped));
}

template <typename T>
EVERSTEP_HOST_DEVICE void drop_one(std::uint32_t half_word, std::uint32_t dropped, float scale, T from, T& to) {
  const float value = to_float(from) * scale;
  store(half_word < dropped ? 0.0F : value, to);
}

// The eight elements of one call of philox: element i has half word i mod 8 of counter i / 8.
template <typename T>
struct Dropout {
  std::uint64_t seed;
  std::uint64_t stream;
  std::uint32_t dropped;
  float scale;
  const T* from;
  T* to;
  std::int64_t count;

  EVERSTEP_HOST_DEVICE std::int64_t calls() const { return (count + kHalfWords - 1) / kHalfWords; }

  EVERSTEP_HOST_DEVICE void operator()(std::int64_t call) const {
    const Philox random(seed, stream, static_cast<std::uint64_t>(call));
    for (int k = 0; k < kHalfWords; ++k) {
      const std::int64_t i = call * kHalfWords + k;
      if (i < count) drop_one(random.half_word(k), dropped, scale, from[i], to[i]);
    }
  }
};

}  // namespace everstep::trainer::kernels
