#pragma once

#include <chrono>
#include <functional>

#include "base/result.h"
#include "launcher/cli/signal_watch.h"

namespace everstep::launcher::chaos {

// Waits that Ctrl-C, SIGTERM and SIGHUP end.
class Waiting {
 public:
  explicit Waiting(const SignalWatch& signals) : signals_(signals) {}

  // Whether that becomes true within the limit. kCancelled names the signal.
  Result<bool> becomes_true(const std::function<bool()>& condition, std::chrono::milliseconds limit);

  Status sleep(std::chrono::milliseconds time);

 private:
  Status check_signals();

  const SignalWatch& signals_;
};

}  // namespace everstep::launcher::chaos
