#pragma once

#include "scheduler/placement.h"
#include "scheduler/profile.h"
#include "scheduler/slowness.h"

namespace everstep::scheduler {

enum class Balance {
  kTime,   // the busiest device works as little as possible
  kMemory  // the fullest stage is as small as possible
};

// Cuts the model's blocks into the placement's stages, each of at least one block. Needs at least as many blocks as
// stages. With one pipeline kTime minimises the slowest stage exactly. With several a device works on all stages of its
// mirror group, so their *sum* counts: the cuts start from the exact solution and move block by block while the
// estimated time of a round falls. A slow device gets less work; where replicas of a stage sit on several devices, the
// slowest of them counts. Memory does not depend on speed.
Cuts partition_blocks(const ModelProfile& profile, const Placement& placement, Balance balance,
                      const Slowness& slowness = {});

// What kTime makes small: about how long the busiest device works on a round of D minibatches.
Tick estimated_round(const ModelProfile& profile, const Placement& placement, const Slowness& slowness,
                     const Cuts& cuts);

}  // namespace everstep::scheduler
