#pragma once

#include <sys/eventfd.h>

#include "base/check.h"
#include "trainer/socket/file_descriptor.h"

namespace everstep::trainer {

// Wakes a thread that polls. Raised from any thread; lowered by the one that was woken.
class EventFlag {
 public:
  EventFlag() { EVERSTEP_CHECK(flag_.is_open(), "eventfd failed"); }

  int descriptor() const { return flag_.get(); }  // readable while it is raised
  void raise() { ::eventfd_write(flag_.get(), 1); }
  void lower() {
    eventfd_t ignored = 0;
    ::eventfd_read(flag_.get(), &ignored);
  }

 private:
  FileDescriptor flag_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
};

}  // namespace everstep::trainer
