#include "launcher/cli/signal_watch.h"

#include <cstring>

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

namespace everstep::launcher {
namespace {

sigset_t watched_signals() {
  sigset_t set = leave_signals();
  ::sigaddset(&set, SIGCHLD);
  return set;
}

}  // namespace

SignalWatch::SignalWatch() : fd_(-1) {
  const sigset_t set = watched_signals();
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, &set, &before);
  // Whoever starts a program may block the others.
  is_inner_ = ::sigismember(&before, SIGCHLD) == 1;
  fd_ = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  EVERSTEP_CHECK(fd_ >= 0, "cannot watch signals");
}

SignalWatch::~SignalWatch() {
  // What arrived and was not read must not end the process now.
  while (!is_inner_ && next()) {
  }
  ::close(fd_);
  if (is_inner_) return;
  const sigset_t set = watched_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::optional<int> SignalWatch::next() const {
  signalfd_siginfo info{};
  if (::read(fd_, &info, sizeof info) != sizeof info) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

sigset_t leave_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  return set;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : "SIG" + std::string(name);
}

std::string end_text(int wait_status) {
  if (WIFSIGNALED(wait_status)) return signal_name(WTERMSIG(wait_status));
  return "exit code " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace everstep::launcher
