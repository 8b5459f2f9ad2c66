#pragma once

#include <ctime>

#include "base/tick.h"

namespace everstep::launcher {

// CLOCK_BOOTTIME: goes on while the process is stopped and while the host sleeps, and nobody can set it. What a lease
// or a deadline is measured with.
inline Tick boot_now() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kTicksPerSecond + now.tv_nsec;
}

// Lets one thread wait for a time of that clock and others wake it.
class BootAlarm {
 public:
  BootAlarm();
  BootAlarm(const BootAlarm&) = delete;
  BootAlarm& operator=(const BootAlarm&) = delete;
  ~BootAlarm();

  // Until that time, or until somebody rings. Tells whether somebody did.
  bool wait_until(Tick time) const;

  // From any thread. Ends the wait of now and all later ones.
  void ring() const;

 private:
  int timer_;
  int bell_;
};

}  // namespace everstep::launcher
