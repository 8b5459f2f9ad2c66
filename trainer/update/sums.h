#pragma once

#include "trainer/model/buffer.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

// Bytes of one element of an accumulated gradient.
constexpr std::size_t sum_bytes(Accumulation accumulation) { return accumulation == Accumulation::kFloat ? 4 : 8; }

// target[i] += addend[i]; both have the same size.
void add_sums(Accumulation accumulation, const Buffer& target, const Buffer& addend);

}  // namespace everstep::trainer
