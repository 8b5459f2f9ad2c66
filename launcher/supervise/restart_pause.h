#pragma once

#include <chrono>

#include "base/log_line.h"
#include "launcher/supervise/worker_fate.h"

namespace everstep::launcher {

// How long to wait before a process that died is replaced: twice as long each time, from `first` to `longest`, but
// short again after one that lived long.
class RestartPause {
 public:
  RestartPause(std::chrono::milliseconds first, std::chrono::milliseconds longest) : first_(first), longest_(longest) {}

  std::chrono::milliseconds after_life_of(std::chrono::nanoseconds life);

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  std::chrono::milliseconds next_{0};
};

// Not one whose command line or configuration was wrong: it would die again.
bool is_worth_a_restart(const WorkerFate& fate);

// Adds "signal=SIGKILL" or "exit=70", as waitpid told it.
void describe_end(int wait_status, LogLine& event);

}  // namespace everstep::launcher
