#pragma once

#include "launcher/cli/options.h"

namespace everstep::launcher {

// What `everstep replay` takes. It computes, so the program with LibTorch does the work, with the same arguments.
CommandSpec replay_spec();

}  // namespace everstep::launcher
