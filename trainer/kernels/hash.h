#pragma once

#include "trainer/kernels/host_device.h"

// A hash that tells equal bytes from others on every device, for replicas of the same weights; no protection against
// somebody who means harm. A tree: the words of a chunk of 64 KiB, mixed with their place, add up to the chunk's hash;
// the chunks' hashes, mixed with theirs, add up to the whole. Integers: in whatever order threads add them.
namespace everstep::trainer::kernels {

inline constexpr std::int64_t kHashChunkBytes = 65536;
inline constexpr std::int64_t kHashChunkWords = kHashChunkBytes / 8;

EVERSTEP_HOST_DEVICE constexpr std::int64_t hash_chunks(std::int64_t bytes) {
  return (bytes + kHashChunkBytes - 1) / kHashChunkBytes;
}

// Different for two words in one place, and for one word in two places.
EVERSTEP_HOST_DEVICE std::uint64_t mixed_word(std::uint64_t word, std::uint64_t place) {
  std::uint64_t x = (word ^ (place * 0x9E3779B97F4A7C15ULL));
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 29);
}

// Every bit of the result depends on every bit of the arguments.
EVERSTEP_HOST_DEVICE std::uint64_t mixed_hash(std::uint64_t hash, std::uint64_t place) {
  std::uint64_t x = mixed_word(hash, place);
  x ^= x >> 32;
  x *= 0xD6E8FEB86659FD93ULL;
  return x ^ (x >> 32);
}

// What the sum of the chunks' hashes starts with.
EVERSTEP_HOST_DEVICE std::uint64_t hash_of_length(std::int64_t bytes) {
  return mixed_hash(static_cast<std::uint64_t>(bytes), 0);
}

// `bytes` on a GPU: aligned to words.
struct HashedBytes {
  const std::uint8_t* bytes;
  std::int64_t size;

  EVERSTEP_HOST_DEVICE std::uint64_t word(std::int64_t index) const {
#ifdef __CUDA_ARCH__
    return reinterpret_cast<const std::uint64_t*>(bytes)[index];
#else
    std::uint64_t word = 0;
    __builtin_memcpy(&word, bytes + index * 8, 8);
    return word;
#endif
  }

  // The last word, if it is short: zeros fill it up.
  EVERSTEP_HOST_DEVICE std::uint64_t short_word() const {
    std::uint64_t word = 0;
    for (std::int64_t i = size / 8 * 8; i < size; ++i) word |= static_cast<std::uint64_t>(bytes[i]) << (8 * (i % 8));
    return word;
  }

  // The words first, first + stride, … of a chunk: parts of its hash that add up to it.
  EVERSTEP_HOST_DEVICE std::uint64_t chunk_part(std::int64_t chunk, std::int64_t first, std::int64_t stride) const {
    const std::int64_t begin = chunk * kHashChunkWords;
    const std::int64_t left = size / 8 - begin;
    const std::int64_t end = left < kHashChunkWords ? left : kHashChunkWords;
    std::uint64_t sum = 0;
    std::int64_t i = first;
    for (; i < end; i += stride) sum += mixed_word(word(begin + i), static_cast<std::uint64_t>(i));
    if (i == end && end < kHashChunkWords && size % 8 != 0) {
      sum += mixed_word(short_word(), static_cast<std::uint64_t>(i));
    }
    return sum;
  }
};

// What a chunk adds to the whole.
EVERSTEP_HOST_DEVICE std::uint64_t chunk_share(std::uint64_t chunk_hash, std::int64_t chunk) {
  return mixed_hash(chunk_hash, static_cast<std::uint64_t>(chunk) + 1);
}

}  // namespace everstep::trainer::kernels
