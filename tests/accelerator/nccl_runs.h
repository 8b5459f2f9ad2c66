#pragma once

#include "tests/accelerator/device_runs.h"

namespace everstep::accelerator {

// The same run on the fake device, where tensors and sums travel over the emulated NCCL: every worker has a device of
// its own with so many hardware queues, and links with all that it talks to.
trainer::RunChanges over_nccl(int hardware_queues, trainer::RunChanges changes = {});

}  // namespace everstep::accelerator
