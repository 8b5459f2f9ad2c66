#pragma once

#include <cstdint>

namespace everstep::trainer {

// How a run is to end at a window's end. Workers may wish differently; all take the strongest wish.
enum class WindowStop : std::uint8_t {
  kNo,
  kHandOver,    // drained and without a checkpoint: the state goes to the next generation
  kSaveAndEnd,  // nobody goes on: with a checkpoint, if the policy makes one at the end
};

}  // namespace everstep::trainer
