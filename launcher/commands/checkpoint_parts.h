#pragma once

#include "launcher/cli/command.h"

namespace everstep::launcher {

// The parts of `everstep checkpoint` that have a file of their own.
Command checkpoint_verify_part();
Command checkpoint_diff_part();
Command checkpoint_prune_part();
Command checkpoint_export_part();
Command checkpoint_import_part();

}  // namespace everstep::launcher
