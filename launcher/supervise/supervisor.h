#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/exit_code.h"
#include "launcher/supervise/worker_fate.h"
#include "launcher/supervise/worker_processes.h"
#include "trainer/checkpoints/checkpoint_committer.h"

namespace everstep::launcher {

struct Supervision {
  std::vector<WorkerStart> workers;
  std::string setup;                          // what every worker must say it is about to do
  std::chrono::milliseconds timeout{60'000};  // how long a worker may be silent, once it spoke

  std::function<void()> on_start;  // all workers know each other now
  std::function<void(const trainer::StepReport&)> on_step;
  std::function<void(const Validation&)> on_validation;
  std::function<void(int signal)> on_stop_request;  // the first signal that asks to leave

  trainer::CheckpointCommitter* committer = nullptr;         // nothing: there are no checkpoints
  std::function<void(const std::string& event)> on_event{};  // for the log
};

struct SupervisionEnd {
  Outcome failure;                 // nothing: all workers finished
  std::vector<Finished> finished;  // by rank, if all did
  std::optional<int> stop_signal;  // what asked to leave, if anything did
};

// Starts the workers, introduces them to each other and waits for their end. One that fails or is silent for too long
// ends the run. The first SIGINT, SIGTERM or SIGHUP asks the workers to stop at the end of the window, a second one (or
// the first before training began) ends them at once. Whatever happens, no worker lives when it returns.
SupervisionEnd supervise(const Supervision& supervision);

}  // namespace everstep::launcher
