#pragma once

#include <string>
#include <vector>

#include "trainer/recovery/end_state.h"
#include "trainer/reference/reference_run.h"

namespace everstep::trainer {

// All that training is at one position, whoever holds which part of it.
struct TrainedState {
  struct Block {
    std::string weights;
    std::string first_moment;
    std::string second_moment;
    std::string master;     // under bf16
    std::string gradients;  // inside a window
  };

  Position position;
  std::int64_t applied = 0;
  std::vector<Block> blocks;
};

// Put together from what the workers hold; all that two of them hold must be equal in every bit (kInternal names what
// is not), and nothing may be missing.
Result<TrainedState> joined(const std::vector<EndState>& states, const ModelConfig& model);

TrainedState state_of(const ReferenceRun& reference, int window);

// The first difference in words; empty if all bits are equal.
std::string difference_between(const TrainedState& expected, const TrainedState& other);

}  // namespace everstep::trainer
