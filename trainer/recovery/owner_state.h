#pragma once

#include <array>
#include <cstddef>

#include "trainer/checkpoints/checkpoint.h"
#include "trainer/model/model_config.h"

namespace everstep::trainer {

// The buffers of a stage that its owner has at a window's end and that training goes on from: weights, both moments,
// under bf16 the master. In the order in which they travel.
inline constexpr std::array<Buffer StageState::*, 4> kOwnerState{
    &StageState::weights,
    &StageState::first_moment,
    &StageState::second_moment,
    &StageState::master,
};

// Of one element of such a buffer; 0 if there is none.
inline std::size_t owner_element_bytes(Buffer StageState::*tensor, const ModelConfig& model) {
  if (tensor == &StageState::weights) return model.weight_bytes();
  const bool is_absent = tensor == &StageState::master && model.precision != Precision::kBf16;
  return is_absent ? 0 : sizeof(float);
}

}  // namespace everstep::trainer
