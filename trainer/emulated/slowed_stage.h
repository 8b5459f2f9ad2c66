#pragma once

#include <memory>

#include "trainer/model/stage_compute.h"

namespace everstep::trainer {

// The stage on a device that takes `factor` times as long (at least 1): waits after each op. Rehearses a straggler.
std::unique_ptr<StageCompute> make_slowed_stage(std::unique_ptr<StageCompute> stage, double factor);

}  // namespace everstep::trainer
