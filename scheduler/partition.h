#pragma once

#include "scheduler/placement.h"
#include "scheduler/profile.h"

namespace everstep::scheduler {

enum class Balance {
  kTime,   // the busiest device works as little as possible
  kMemory  // the fullest stage is as small as possible
};

// Cuts the model's blocks into the placement's stages, each of at least one block. Needs at least as many blocks as
// stages. With one pipeline kTime minimises the slowest stage exactly. With several a device works on all stages of its
// mirror group, so their *sum* counts: the cuts start from the exact solution and move block by block while the
// estimated time of a round falls.
Cuts partition_blocks(const ModelProfile& profile, const Placement& placement, Balance balance);

}  // namespace everstep::scheduler
