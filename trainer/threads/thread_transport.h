#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Holds every frame back for a random time, to shake out code that relies on timing. Frames of one stream stay in
// order.
struct ThreadDelays {
  std::chrono::microseconds longest{0};  // 0: none
  std::uint64_t seed = 0;
};

// The transports of workers 0 … workers − 1 inside one process, one thread each, for tests. A frame is copied from the
// sender's buffer into the receiver's when the receiver waits for it, and refused with kInternal if the sender changed
// the buffer in between. A transport destroyed before close() counts as a death, which all peers see at once.
std::vector<std::unique_ptr<Transport>> make_thread_transports(int workers, const ThreadDelays& delays = {});

}  // namespace everstep::trainer
