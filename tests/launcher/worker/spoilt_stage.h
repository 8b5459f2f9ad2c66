#pragma once

#include "launcher/worker/stage_hooks.h"

namespace everstep::launcher {

// Stages that compute something that is not a number where the variable TEST_NAN_AT of the process says so, as
// "POSITION:BLOCK:PASS" with the pass forward or backward. It is the stage which holds that block that does it, with
// every run of that minibatch; with ":FILE" behind it only if there is no such file, which it makes: once among all
// workers of a job. Without the variable, the stages as they are.
MakeStage spoilt_as_asked(MakeStage make_stage);

}  // namespace everstep::launcher
