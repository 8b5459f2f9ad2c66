#pragma once

#include <functional>
#include <thread>

#include "launcher/cli/signal_watch.h"
#include "launcher/worker/leave_notice.h"

namespace everstep::launcher {

// Turns the first signal that asks to leave into a notice, and ends the process at once at the second. One at a time,
// made before any other thread.
class LeaveSignals {
 public:
  LeaveSignals();
  LeaveSignals(const LeaveSignals&) = delete;
  LeaveSignals& operator=(const LeaveSignals&) = delete;
  ~LeaveSignals();

  // From now on told here, also what came before. By a thread of its own; must not block.
  void listen(std::function<void(const LeaveNotice&)> on_notice);

  // Tells nobody any more.
  void stop_listening();

 private:
  void run();

  SignalWatch signals_;
  int closing_;
  std::function<void(const LeaveNotice&)> on_notice_;
  std::thread thread_;
};

}  // namespace everstep::launcher
