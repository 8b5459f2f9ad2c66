#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/check.h"
#include "trainer/ucx/lifeline/file_descriptor.h"

namespace everstep::trainer {

// A thread that sleeps until a descriptor becomes readable or another thread wakes it.
class Sleeper {
 public:
  Sleeper() { wake_for(wake_.get()); }

  void wake_for(int descriptor) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = descriptor}};
    EVERSTEP_CHECK(::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl failed");
  }

  void wake() { EVERSTEP_CHECK(::eventfd_write(wake_.get(), 1) == 0, "eventfd_write failed"); }

  // A negative limit is none.
  void sleep(std::chrono::milliseconds limit) {
    epoll_event event{};
    ::epoll_wait(events_.get(), &event, 1, static_cast<int>(std::min<std::int64_t>(limit.count(), kLongestSleepMs)));
    eventfd_t ignored = 0;
    ::eventfd_read(wake_.get(), &ignored);
  }

 private:
  static constexpr std::int64_t kLongestSleepMs = 1'000'000;

  FileDescriptor wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  FileDescriptor events_{::epoll_create1(EPOLL_CLOEXEC)};
};

}  // namespace everstep::trainer
