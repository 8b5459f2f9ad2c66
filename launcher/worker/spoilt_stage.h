#pragma once

#include <functional>
#include <memory>

#include "trainer/model/stage_compute.h"

namespace everstep::launcher {

using MakeStage = std::function<std::unique_ptr<trainer::StageCompute>(const trainer::StageRequest&)>;

// Only in programs that are built with their tests: stages that compute something that is not a number where the
// variable TEST_NAN_AT of the process says so, as "POSITION:BLOCK:PASS" with the pass forward or backward. It is the
// stage which holds that block that does it, with every run of that minibatch; with ":FILE" behind it only if there is
// no such file, which it makes: once among all workers of a job. Without the variable, the stages as they are.
MakeStage spoilt_as_asked(MakeStage make_stage);

}  // namespace everstep::launcher
