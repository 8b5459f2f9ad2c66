#include "trainer/torch/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace everstep::trainer {
namespace {

constexpr std::size_t kLanes = 16;                   // philox calls side by side: two vectors of AVX2
constexpr std::size_t kHalfWords = 8;                // of one call
constexpr std::size_t kChunk = kLanes * kHalfWords;  // elements of one round of the generator

struct Words {
  std::array<std::uint32_t, kLanes> word[4];
};

// base/random.h's philox on kLanes consecutive counters, word by word so that the compiler can use vectors.
__attribute__((target_clones("avx2", "default"))) void philox_lanes(std::uint64_t seed, std::uint64_t stream,
                                                                    std::uint64_t first, Words& words) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    words.word[0][lane] = static_cast<std::uint32_t>(first + lane);
    words.word[1][lane] = static_cast<std::uint32_t>((first + lane) >> 32);
    words.word[2][lane] = static_cast<std::uint32_t>(stream);
    words.word[3][lane] = static_cast<std::uint32_t>(stream >> 32);
  }
  auto key_low = static_cast<std::uint32_t>(seed);
  auto key_high = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::uint64_t left = std::uint64_t{0xD2511F53} * words.word[0][lane];
      const std::uint64_t right = std::uint64_t{0xCD9E8D57} * words.word[2][lane];
      words.word[0][lane] = static_cast<std::uint32_t>(right >> 32) ^ words.word[1][lane] ^ key_low;
      words.word[1][lane] = static_cast<std::uint32_t>(right);
      words.word[2][lane] = static_cast<std::uint32_t>(left >> 32) ^ words.word[3][lane] ^ key_high;
      words.word[3][lane] = static_cast<std::uint32_t>(left);
    }
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
}

using Chunk = std::array<std::uint16_t, kChunk>;

void random_chunk(const RandomStream& stream, std::size_t chunk, Chunk& bits) {
  Words words;
  philox_lanes(stream.seed(), stream.stream(), chunk * kLanes, words);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for (std::size_t word = 0; word < 4; ++word) {
      bits[lane * kHalfWords + 2 * word] = static_cast<std::uint16_t>(words.word[word][lane]);
      bits[lane * kHalfWords + 2 * word + 1] = static_cast<std::uint16_t>(words.word[word][lane] >> 16);
    }
  }
}

template <typename T>
void drop_all(const RandomStream& stream, std::uint32_t dropped, std::span<const T> from, std::span<T> to) {
  const float scale = 65536.0F / (65536.0F - static_cast<float>(dropped));
  Chunk bits;
  for (std::size_t begin = 0; begin < from.size(); begin += kChunk) {
    random_chunk(stream, begin / kChunk, bits);
    const std::size_t count = std::min(kChunk, from.size() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const float value = static_cast<float>(from[begin + i]) * scale;
      to[begin + i] = static_cast<T>(bits[i] < dropped ? 0.0F : value);
    }
  }
}

template <typename T>
at::Tensor dropped_copy(const at::Tensor& values, const RandomStream& stream, std::uint32_t dropped) {
  at::Tensor result = at::empty_like(values);
  const auto size = static_cast<std::size_t>(values.numel());
  drop_all<T>(stream, dropped, {values.const_data_ptr<T>(), size}, {result.mutable_data_ptr<T>(), size});
  return result;
}

}  // namespace

at::Tensor drop_out(const at::Tensor& values, const BlockCall& call, RandomUse use) {
  const auto dropped = static_cast<std::uint32_t>(std::lround(call.model.dropout * 65536.0));
  if (!call.training || dropped == 0) return values;
  const RandomStream stream = random_stream(call.model.seed, use, call.block, call.position.value);
  const at::Tensor dense = values.contiguous();
  return dense.scalar_type() == at::kBFloat16 ? dropped_copy<c10::BFloat16>(dense, stream, dropped)
                                              : dropped_copy<float>(dense, stream, dropped);
}

void random_half_words(const RandomStream& stream, std::span<std::uint16_t> bits) {
  Chunk chunk;
  for (std::size_t begin = 0; begin < bits.size(); begin += kChunk) {
    random_chunk(stream, begin / kChunk, chunk);
    std::copy_n(chunk.begin(), std::min(kChunk, bits.size() - begin),
                bits.begin() + static_cast<std::ptrdiff_t>(begin));
  }
}

}  // namespace everstep::trainer
