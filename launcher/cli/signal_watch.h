#pragma once

#include <csignal>
#include <optional>
#include <string>

namespace everstep::launcher {

// Turns the signals that ask this process to leave (see leave_signals) and SIGCHLD into something to read, as long as
// it lives. Made before any thread. One may live inside another: what nobody has read when the inner one ends, the
// outer one still has.
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
  bool is_inner_ = false;
};

// Those that ask a process to leave: SIGINT, SIGTERM and SIGHUP, but for any that it was started to ignore, as nohup
// and a shell's & do it. Blocked, they wait for a SignalWatch, also for that of the program which a process becomes:
// until it runs they would end it.
sigset_t leave_signals();

// "SIGTERM"; "signal 42" if it has no name.
std::string signal_name(int signal);

// How a process ended, by the word of waitpid: "exit code 75", "SIGKILL".
std::string end_text(int wait_status);

}  // namespace everstep::launcher
