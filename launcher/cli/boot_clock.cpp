#include "launcher/cli/boot_clock.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"

namespace everstep::launcher {

BootAlarm::BootAlarm()
    : timer_(::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC)),
      bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  EVERSTEP_CHECK(timer_ >= 0 && bell_ >= 0, "cannot make a timer");
}

BootAlarm::~BootAlarm() {
  ::close(timer_);
  ::close(bell_);
}

bool BootAlarm::wait_until(Tick time) const {
  const Tick at = std::max<Tick>(time, 1);  // 0 would switch the timer off
  const itimerspec when{{}, {at / kTicksPerSecond, at % kTicksPerSecond}};
  EVERSTEP_CHECK(::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr) == 0, "cannot set a timer");
  std::array<pollfd, 2> ends{pollfd{timer_, POLLIN, 0}, pollfd{bell_, POLLIN, 0}};
  while (::poll(ends.data(), ends.size(), -1) < 0) {
    // a signal: wait on
  }
  return ends[1].revents != 0;
}

void BootAlarm::ring() const {
  const std::uint64_t one = 1;
  EVERSTEP_CHECK(::write(bell_, &one, sizeof one) == sizeof one, "cannot ring");
}

}  // namespace everstep::launcher
