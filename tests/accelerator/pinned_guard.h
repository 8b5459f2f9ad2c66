#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/accelerator/arena.h"
#include "tests/accelerator/clock.h"

namespace everstep::accelerator {

// Keeps the host off pinned memory that a device works on, from the launch until some host thread knows that it is
// over: off all of it that the device writes, and from writing what the device reads. Not for threads at once.
class PinnedGuard {
 public:
  struct InFlight {
    std::size_t begin = 0;  // bytes of the arena
    std::size_t end = 0;
    bool writes = false;  // the device
    Moment when;
    std::string what;
  };

  explicit PinnedGuard(const Arena& arena) : arena_(arena) {}

  void begin(InFlight work);

  // The host knows all of this to be over.
  void end_known(const Clock& known);

  // Nothing is in flight there any more.
  void end_all(std::size_t begin, std::size_t end);

  // What the host must not disturb by this touch; nothing if it may. A page can be shared with what is in flight.
  const InFlight* disturbed_by(std::size_t byte, bool host_writes) const;

  // That work on any of these bytes still has to become known as over.
  std::vector<Moment> in_flight(std::size_t begin, std::size_t end) const;

 private:
  Rights rights_of(std::size_t page) const;
  void set_rights(std::size_t begin, std::size_t end) const;

  const Arena& arena_;
  std::vector<InFlight> in_flight_;
};

}  // namespace everstep::accelerator
