#pragma once

#include <optional>
#include <string>

namespace everstep::launcher {

// Turns the signals that ask this process to leave (SIGINT, SIGTERM, SIGHUP) and SIGCHLD into something to read, as
// long as it lives. One at a time, made before any thread.
class SignalWatch {
 public:
  SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;
  ~SignalWatch();

  // Becomes readable when a signal is there.
  int fd() const { return fd_; }

  // The next signal that arrived; nothing if there is none.
  std::optional<int> next() const;

 private:
  int fd_;
};

// "SIGTERM"; "signal 42" if it has no name.
std::string signal_name(int signal);

}  // namespace everstep::launcher
