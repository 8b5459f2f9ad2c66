#pragma once

#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/types.h>

namespace everstep {

// As kill() does, but to one process only. The kernel sends what is for 0, −1 and other negative numbers to a group of
// processes or to all there are. A test that has not found the process that it looked for fails instead.
inline int send_signal(pid_t process, int signal) {
  if (process > 0) return ::kill(process, signal);
  ADD_FAILURE() << "signal " << signal << " to process " << process << ", which is not one process";
  errno = ESRCH;
  return -1;
}

}  // namespace everstep
