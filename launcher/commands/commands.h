#pragma once

#include <vector>

#include "launcher/command.h"

namespace everstep::launcher {

// All commands, in the order in which `everstep --help` lists them.
std::vector<Command> all_commands();

Command audit_command();
Command checkpoint_command();
Command plan_command();
Command replay_command();
Command schedule_command();
Command simulate_command();
Command train_command();

}  // namespace everstep::launcher
