#include "launcher/supervise/run_end.h"

#include <utility>

#include "base/log_line.h"
#include "launcher/cli/signal_watch.h"

namespace everstep::launcher {

std::string stopping_event(int signal) {
  return LogLine("stopping")
      .add("signal", signal_name(signal))
      .add("until", "the end of the window")
      .add("at_once", "with a second signal")
      .text();
}

Failure stopped_early(std::int64_t done, std::int64_t wanted, std::optional<int> signal) {
  return Failure({ErrorCode::kCancelled,
                  "stopped after " + std::to_string(done) + " of " + std::to_string(wanted) +
                      " steps: " + (signal ? signal_name(*signal) : "the job was asked to"),
                  ""});
}

Failure last_checkpoint_lost(Error error) {
  error.message = "training ended, but its last checkpoint could not be saved: " + error.message;
  return Failure(std::move(error));
}

}  // namespace everstep::launcher
