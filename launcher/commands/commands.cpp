#include "launcher/commands/commands.h"

namespace everstep::launcher {

std::vector<Command> all_commands() { return {plan_command(), schedule_command(), simulate_command()}; }

}  // namespace everstep::launcher
