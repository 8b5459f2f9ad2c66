#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace everstep::accelerator {

enum class OnMistake : std::uint8_t {
  kEndProcess,  // the first mistake is written to stderr and aborts
  kRecord,      // mistakes are kept until somebody asks; a host that touches what it must not sees the true bytes
};

struct Options {
  OnMistake on_mistake = OnMistake::kEndProcess;
  int hardware_queues = 0;                     // that all streams share in turn; 0: one for each stream
  std::chrono::microseconds laziness{0};       // work begins this late, unless a host thread waits for something
  std::chrono::microseconds jitter{0};         // and up to this much later, drawn with `seed`
  std::uint64_t seed = 1;                      // of the jitter
  std::size_t memory = std::size_t{16} << 30;  // addresses for device memory, and as many for pinned memory
};

enum class MistakeKind : std::uint8_t {
  kRace,         // two accesses to the same bytes, one of them a write, that nothing orders
  kFreedMemory,  // work on memory that is not allocated, or memory freed while another stream may still work on it
  kHostTouch,    // the host touched device memory, or pinned memory while a copy from or to it is in flight
  kStream,       // a stream or an event was used in a way that no accelerator promises to survive
};

struct Mistake {
  MistakeKind kind = MistakeKind::kRace;
  std::string text;
};

struct Counters {
  std::int64_t launches = 0;     // of kernels and copies
  std::int64_t waits = 0;        // calls in which the host waits, also if what they wait for is over
  std::int64_t waits_here = 0;   // of them, those of the thread that asks
  std::int64_t allocations = 0;  // of device memory that the cache did not have: the calls of cudaMalloc
  std::int64_t copies_to_device = 0;
  std::int64_t copies_to_host = 0;
};

}  // namespace everstep::accelerator
