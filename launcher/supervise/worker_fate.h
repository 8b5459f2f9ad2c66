#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/worker/control_message.h"

namespace everstep::launcher {

// What is known about one worker of a run.
struct WorkerFate {
  std::optional<Finished> finished;
  std::optional<Error> error;      // its last word
  std::optional<int> wait_status;  // as waitpid tells it; nothing while it runs
  bool is_silent = false;          // it runs, but gives no sign of life
  std::string log_path;
  std::string crash{};  // what its log says of the crash that ended it; empty: nothing

  // As waitpid tells it. Looks for the report of a crash.
  void end(int status);

  // It has nothing more to do, and did it well.
  bool is_done() const { return finished && wait_status == 0; }
  bool has_failed() const { return error || (wait_status && !is_done()); }
};

// Why a run ended in which some worker has failed, in one line that names the worker to look at. Workers lose their
// peers one after the other then, so the first word is rarely the cause. In this order: a worker that a signal ended,
// one that found an error which is not about its peers, one that left without a word, one that gives no sign of life,
// and else what the workers say about each other.
Error explain_failure(const std::vector<WorkerFate>& workers);

}  // namespace everstep::launcher
