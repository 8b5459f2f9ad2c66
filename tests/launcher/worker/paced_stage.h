#pragma once

#include "launcher/worker/stage_hooks.h"

namespace everstep::launcher {

// Stages that rest after every op for as many microseconds as the variable TEST_PACE_US of the process says. A job of a
// test then leaves the machine to other tests, and makes no more steps than the test waits for, all of which are
// replayed in the end. Without the variable, the stages as they are.
MakeStage paced_as_asked(MakeStage make_stage);

}  // namespace everstep::launcher
