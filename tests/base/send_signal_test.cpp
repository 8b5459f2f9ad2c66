#include "tests/send_signal.h"

#include <cerrno>

#include <gtest/gtest-spi.h>
#include <sys/wait.h>
#include <unistd.h>

namespace everstep {
namespace {

// Signal 0 does nothing, so that nobody dies if it is sent after all.
TEST(SendSignal, GoesToNoGroupAndNotToEverybody) {
  for (const pid_t process : {pid_t{0}, pid_t{-1}, -::getpgrp()}) {
    int sent = 0;
    EXPECT_NONFATAL_FAILURE(sent = send_signal(process, 0), "which is not one process");
    EXPECT_EQ(sent, -1);
    EXPECT_EQ(errno, ESRCH);
  }
}

TEST(SendSignal, GoesToOneProcess) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    while (true) ::pause();
  }
  EXPECT_EQ(send_signal(child, SIGKILL), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace everstep
