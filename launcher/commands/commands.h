#pragma once

#include <vector>

#include "launcher/cli/command.h"

namespace everstep::launcher {

// All commands, in the order in which `everstep --help` lists them.
std::vector<Command> all_commands();

Command audit_command();
Command chaos_command();
Command checkpoint_command();
Command doctor_command();
Command drain_command();
Command job_command();
Command plan_command();
Command replay_command();
Command replay_trace_command();
Command resume_command();
Command scale_command();
Command schedule_command();
Command sim_command();
Command goodput_command();
Command status_command();
Command stop_command();
Command train_command();
Command worker_command();

}  // namespace everstep::launcher
