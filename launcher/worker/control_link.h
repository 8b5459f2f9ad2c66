#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "launcher/worker/control_message.h"
#include "launcher/worker/control_socket.h"

namespace everstep::launcher {

// A worker's connection to its supervisor. A thread of its own tells the supervisor that this process lives, and ends
// the process when the supervisor is gone.
class ControlLink {
 public:
  // `on_orphaned` is called before the process ends because the supervisor is gone.
  ControlLink(ControlSocket socket, std::function<void()> on_orphaned);
  ControlLink(const ControlLink&) = delete;
  ControlLink& operator=(const ControlLink&) = delete;
  ~ControlLink();

  // From any thread. A supervisor that is stopped (Ctrl-Z) must not stop the training: what it can do without is
  // dropped while it does not read.
  void send(const FromWorker& message) const;

  // Waits for the supervisor's word, once.
  Start wait_for_start() { return start_.get_future().get(); }

  bool stop_requested() const { return stop_requested_; }

  // Who is told the verdicts, on the link's own thread; nobody with an empty function. Returns when a call that is
  // under way has ended.
  void set_verdict_taker(std::function<void(const trainer::Verdict&)> taker);

 private:
  void listen();
  void take(const Start& start) { start_.set_value(start); }
  void take(const Stop&) { stop_requested_ = true; }
  void take(const trainer::Verdict& verdict);

  ControlSocket socket_;
  std::function<void()> on_orphaned_;
  std::promise<Start> start_;
  std::atomic<bool> stop_requested_{false};
  std::mutex mutex_;
  std::function<void(const trainer::Verdict&)> take_verdict_;
  std::atomic<bool> is_closing_{false};
  std::thread thread_;
};

}  // namespace everstep::launcher
