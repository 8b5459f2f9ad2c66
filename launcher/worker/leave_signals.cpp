#include "launcher/worker/leave_signals.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

LeaveSignals::LeaveSignals() : closing_(::eventfd(0, EFD_CLOEXEC)) {
  EVERSTEP_CHECK(closing_ >= 0, "cannot make an event descriptor");
}

LeaveSignals::~LeaveSignals() {
  stop_listening();
  ::close(closing_);
}

void LeaveSignals::stop_listening() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  EVERSTEP_CHECK(::write(closing_, &one, sizeof one) == sizeof one, "an event descriptor takes a number");
  thread_.join();
}

void LeaveSignals::listen(std::function<void(const LeaveNotice&)> on_notice) {
  on_notice_ = std::move(on_notice);
  thread_ = std::thread([this] { run(); });
}

void LeaveSignals::run() {
  bool was_asked = false;
  while (true) {
    pollfd descriptors[] = {{signals_.fd(), POLLIN, 0}, {closing_, POLLIN, 0}};
    if (::poll(descriptors, 2, -1) < 0 && errno != EINTR) return;
    if (descriptors[1].revents != 0) return;
    while (const auto signal = signals_.next()) {
      if (*signal == SIGCHLD) continue;
      // Not exit(): other threads are in the middle of something.
      if (std::exchange(was_asked, true)) std::_Exit(static_cast<int>(ExitCode::kRestart));
      on_notice_({signal_name(*signal), 0});
    }
  }
}

}  // namespace everstep::launcher
