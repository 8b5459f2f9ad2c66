#pragma once

#include <cstdint>
#include <span>

#include "trainer/model/random_key.h"
#include "trainer/torch/block.h"

namespace everstep::trainer {

// `values` with a random share of the elements zero and the others scaled up by what was lost; the mask is a pure
// function of (seed, use, block, position, element), so that a backward asks for the same one again instead of keeping
// it. `values` themselves if the model drops nothing or does not train.
at::Tensor drop_out(const at::Tensor& values, const BlockCall& call, RandomUse use);

// 16 random bits for each of the elements [0, bits.size()): element i has half word i mod 8 (low half first) of
// philox(seed, {i / 8, stream}).
void random_half_words(const RandomStream& stream, std::span<std::uint16_t> bits);

}  // namespace everstep::trainer
