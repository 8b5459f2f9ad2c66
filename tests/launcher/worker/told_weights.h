#pragma once

#include "launcher/worker/stage_hooks.h"

namespace everstep::launcher {

// Stages whose process tells where it has their weights, in a file that is called like its process id in the directory
// that its variable TEST_WEIGHTS_TOLD_IN names, as "ADDRESS BYTES"; the newest stage's. A test can make a bit flip
// there. Without the variable, the stages as they are.
MakeStage telling_weights_as_asked(MakeStage make_stage);

}  // namespace everstep::launcher
