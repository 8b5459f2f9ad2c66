#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "base/tick.h"
#include "trainer/model/device_memory.h"

namespace everstep::launcher {

// What a device was given to do and has not done yet, for threads that must know whether it makes progress. The
// training thread never waits for a single op there, so nothing else tells of one that does not end. Any thread may
// call.
class DeviceWork {
 public:
  using Work = trainer::DeviceMemory::Work;

  explicit DeviceWork(std::function<Tick()> now) : now_(std::move(now)) {}

  // The device has all work before `mark`. Marks of one kind pass in the order in which they are given; one of a copy
  // passes after those of the compute stream that were given before it.
  void given(Work kind, const trainer::Mark& mark);

  // Training on the device has ended.
  void forget();

  // How long the device has worked on what comes next: the longest of all kinds of work. It counts from the first call
  // here that found all before it done. 0: nothing is left to do.
  Tick longest_wait();

 private:
  static constexpr std::size_t kKinds = 3;

  struct Piece {
    trainer::Mark mark;
    std::int64_t after = 0;      // so many of the compute stream
    std::optional<Tick> turn{};  // since when all before it is done
  };
  struct Queue {
    std::deque<Piece> pieces;
    std::int64_t passed = 0;
  };

  Queue& queue_of(Work kind) { return queues_[static_cast<std::size_t>(kind)]; }
  void look(Tick now);

  const std::function<Tick()> now_;
  std::mutex mutex_;
  std::array<Queue, kKinds> queues_;  // the compute stream's first
};

}  // namespace everstep::launcher
