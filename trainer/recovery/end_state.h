#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "trainer/checkpoints/checkpoint.h"

namespace everstep::trainer {

// What one worker has in memory after an orderly end of train(), or after its group has stopped because of a death in
// another one: all that the next generation needs from it, on the host. There the buffers are those that were trained
// on, handed on without a copy, and nobody changes them any more: several generations may be started from them.
struct EndState {
  // Where training goes on. `history` holds the windows since the last cut that was handed to the checkpoint sink: what
  // a sink has not committed yet (CheckpointWriter::uncommitted()) belongs before it.
  ResumePoint resume;

  // Every chunk of this worker with its weights; moments and master where it owns the stage; gradients where it writes
  // the stage and the position is inside a window, or where it owns the stage and its group kept its sums.
  std::vector<StagedStage> stages;
};

}  // namespace everstep::trainer
