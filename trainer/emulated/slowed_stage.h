#pragma once

#include <memory>

#include "trainer/model/stage_compute.h"

namespace everstep::trainer {

// The stage on a worker that takes `factor` times as long (at least 1): waits after each op. Rehearses a straggler.
// Whoever computes on a device names it: an op has then ended when the device has done it.
std::unique_ptr<StageCompute> make_slowed_stage(std::unique_ptr<StageCompute> stage, double factor,
                                                DeviceMemory* device = nullptr);

}  // namespace everstep::trainer
