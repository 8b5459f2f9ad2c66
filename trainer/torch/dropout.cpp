#include "trainer/torch/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/kernels/clones.h"
#include "trainer/kernels/dropout.h"
#include "trainer/torch/cpu_ops.h"
#include "trainer/torch/ops.h"

namespace everstep::trainer {
namespace {

using kernels::Bf16;
using kernels::kHalfWords;

constexpr std::size_t kLanes = 16;                   // philox calls side by side: two vectors of AVX2
constexpr std::size_t kChunk = kLanes * kHalfWords;  // elements of one round of the generator

struct Words {
  std::array<std::uint32_t, kLanes> word[4];
};

// kernels::Philox on kLanes consecutive counters, word by word: vector code that is a fifth faster than what the
// compiler makes of a loop around it.
EVERSTEP_CLONES void philox_lanes(std::uint64_t seed, std::uint64_t stream, std::uint64_t first, Words& words) {
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

struct Drop {
  std::uint32_t dropped;
  float scale;
};

template <typename T>
EVERSTEP_HOST_DEVICE void drop_each(const Drop& drop, const Chunk& bits, const T* __restrict from, T* __restrict to,
                                    std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) kernels::drop_one(bits[i], drop.dropped, drop.scale, from[i], to[i]);
}

EVERSTEP_CLONES void drop_chunk(const Drop& drop, const Chunk& bits, const float* from, float* to, std::size_t count) {
  drop_each(drop, bits, from, to, count);
}

EVERSTEP_CLONES void drop_chunk(const Drop& drop, const Chunk& bits, const Bf16* from, Bf16* to, std::size_t count) {
  drop_each(drop, bits, from, to, count);
}

template <typename T>
void drop_all(const RandomStream& stream, std::uint32_t dropped, std::span<const T> from, std::span<T> to) {
  const Drop drop{dropped, kernels::dropout_scale(dropped)};
  Chunk bits;
  for (std::size_t begin = 0; begin < from.size(); begin += kChunk) {
    random_chunk(stream, begin / kChunk, bits);
    drop_chunk(drop, bits, from.data() + begin, to.data() + begin, std::min(kChunk, from.size() - begin));
  }
}

template <typename T>
void drop_tensor(const at::Tensor& values, const at::Tensor& result, const RandomStream& stream,
                 std::uint32_t dropped) {
  const auto size = static_cast<std::size_t>(values.numel());
  drop_all<T>(stream, dropped, {static_cast<const T*>(values.const_data_ptr()), size},
              {static_cast<T*>(result.mutable_data_ptr()), size});
}

}  // namespace

void cpu::dropout(const Tensor& result, const Tensor& values, std::int64_t seed, std::int64_t stream,
                  std::int64_t dropped) {
  const RandomStream random{static_cast<std::uint64_t>(seed), static_cast<std::uint64_t>(stream)};
  if (values.scalar_type() == at::kBFloat16) {
    drop_tensor<Bf16>(values, result, random, static_cast<std::uint32_t>(dropped));
  } else {
    drop_tensor<float>(values, result, random, static_cast<std::uint32_t>(dropped));
  }
}

at::Tensor drop_out(const at::Tensor& values, const BlockCall& call, RandomUse use) {
  const std::int64_t dropped = std::lround(call.model.dropout * 65536.0);
  if (!call.training || dropped == 0) return values;
  const RandomStream stream = random_stream(call.model.seed, use, call.block, call.position.value);
  const at::Tensor dense = values.contiguous();
  at::Tensor result = at::empty_like(dense);
  ops::dropout(result, dense, stream.seed(), stream.stream(), dropped);
  return result;
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
