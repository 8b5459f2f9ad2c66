#pragma once

#include <cstdint>

#include "base/ids.h"
#include "base/random.h"

namespace everstep::trainer {

// Every random number of a training run belongs to what it is for, never to who drew it or when: the same numbers under
// every plan, after every restart.
enum class RandomUse : std::uint8_t {
  kInit,  // of parameter `index` of a block
  kEmbeddingDropout,
  kAttentionDropout,  // of the attention's residual branch
  kFeedForwardDropout,
  kSampleOrder,   // by epoch
  kSentencePair,  // BERT: how a sample is made; by sample
  kMasking,       // BERT: which tokens are hidden; by sample
};

// `block` below 2^16, `index` below 2^40 (a position, an epoch, a sample, a parameter).
constexpr RandomStream random_stream(std::uint64_t seed, RandomUse use, int block, std::int64_t index) {
  return {seed, (static_cast<std::uint64_t>(use) << 56) | (static_cast<std::uint64_t>(block) << 40) |
                    static_cast<std::uint64_t>(index)};
}

}  // namespace everstep::trainer
