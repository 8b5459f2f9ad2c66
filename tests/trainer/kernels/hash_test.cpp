#include "trainer/kernels/hash.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/trainer/kernels/grid_walk.h"
#include "trainer/update/loops.h"

namespace everstep::trainer::kernels {
namespace {

std::vector<std::uint8_t> random_bytes(std::int64_t size) {
  const RandomStream random{22, 23};
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(random.bits(i)));
  return bytes;
}

std::uint64_t loop_hash(const std::vector<std::uint8_t>& bytes) { return tree_hash(std::as_bytes(std::span(bytes))); }

std::uint64_t hash_by_blocks(const std::vector<std::uint8_t>& bytes) {
  const HashedBytes hashed{bytes.data(), std::ssize(bytes)};
  std::uint64_t hash = hash_of_length(hashed.size);
  for (std::int64_t chunk = hash_chunks(hashed.size); chunk-- > 0;) {
    std::uint64_t sum = 0;
    for (int thread = kThreads; thread-- > 0;) sum += hashed.chunk_part(chunk, thread, kThreads);
    hash += chunk_share(sum, chunk);
  }
  return hash;
}

// The documented tree, written without the functors.
std::uint64_t naive_hash(const std::vector<std::uint8_t>& bytes) {
  const auto mix = [](std::uint64_t x, std::uint64_t place, bool strong) {
    x ^= place * 0x9E3779B97F4A7C15ULL;
    x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
    x ^= x >> 29;
    if (strong) x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93ULL;
    return strong ? x ^ (x >> 32) : x;
  };
  std::vector<std::uint64_t> chunks((bytes.size() + 65535) / 65536);
  for (std::size_t word = 0; word * 8 < bytes.size(); ++word) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < 8 && word * 8 + i < bytes.size(); ++i) {
      value += std::uint64_t{bytes[word * 8 + i]} << (8 * i);
    }
    chunks[word / 8192] += mix(value, word % 8192, false);
  }
  std::uint64_t hash = mix(bytes.size(), 0, true);
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) hash += mix(chunks[chunk], chunk + 1, true);
  return hash;
}

TEST(Hash, IsTheSameByLoopByBlocksAndByHand) {
  for (const std::int64_t size : {0, 1, 7, 8, 9, 1000, 65'535, 65'536, 65'537, 131'072, 200'003}) {
    const std::vector<std::uint8_t> bytes = random_bytes(size);
    EXPECT_EQ(loop_hash(bytes), naive_hash(bytes)) << size;
    EXPECT_EQ(hash_by_blocks(bytes), naive_hash(bytes)) << size;
  }
}

TEST(Hash, TellsEveryFlippedBitAndEveryLengthApart) {
  std::vector<std::uint8_t> bytes = random_bytes(70'000);
  std::set<std::uint64_t> seen = {loop_hash(bytes)};
  std::size_t expected = 1;
  for (const std::size_t place : {0, 7, 8, 65'535, 65'536, 69'999}) {
    for (int bit = 0; bit < 8; ++bit, ++expected) {
      bytes[place] ^= static_cast<std::uint8_t>(1 << bit);
      seen.insert(loop_hash(bytes));
      bytes[place] ^= static_cast<std::uint8_t>(1 << bit);
    }
  }
  const std::vector<std::uint8_t> zeros(100);
  for (std::size_t size = 0; size <= zeros.size(); ++size, ++expected) {
    seen.insert(tree_hash(std::as_bytes(std::span(zeros).first(size))));
  }
  EXPECT_EQ(seen.size(), expected);
}

TEST(Hash, TellsSwappedWordsAndSwappedChunksApart) {
  std::vector<std::uint8_t> bytes = random_bytes(3 * 65'536);
  const std::uint64_t before = loop_hash(bytes);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  EXPECT_NE(loop_hash(bytes), before);
  std::swap_ranges(bytes.begin(), bytes.begin() + 8, bytes.begin() + 8);
  std::swap_ranges(bytes.begin(), bytes.begin() + 65'536, bytes.begin() + 65'536);
  EXPECT_NE(loop_hash(bytes), before);
}

}  // namespace
}  // namespace everstep::trainer::kernels
