#include "launcher/commands/commands.h"

namespace everstep::launcher {

std::vector<Command> all_commands() {
  return {train_command(),        worker_command(), status_command(),     drain_command(), scale_command(),
          stop_command(),         resume_command(), job_command(),        plan_command(),  schedule_command(),
          goodput_command(),      sim_command(),    checkpoint_command(), audit_command(), replay_command(),
          replay_trace_command(), chaos_command(),  doctor_command()};
}

}  // namespace everstep::launcher
