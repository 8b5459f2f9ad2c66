#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/tick.h"
#include "scheduler/op.h"

namespace everstep::trainer {

// One op as it really ran. Waiting for its input is apart from running it.
struct OpRecord {
  scheduler::Op op;
  Tick begin = 0;    // reached in the list
  Tick started = 0;  // input there
  Tick end = 0;      // 0: not finished
};

// The last ops of this worker with their times, in a ring: what one wants to see after a failed check or a timeout.
class FlightRecorder {
 public:
  explicit FlightRecorder(std::size_t capacity);

  void begin(const scheduler::Op& op, Tick now);
  void input_ready(Tick now);     // not called for ops without input
  const OpRecord& end(Tick now);  // the finished record, valid until the next begin()

  // The newest; nothing before the first. Allocates nothing and takes no lock, so that a signal handler may call it.
  const OpRecord* newest() const { return count_ == 0 ? nullptr : &ring_[(count_ - 1) % ring_.size()]; }

  // Oldest first.
  std::vector<OpRecord> records() const;

  // One line per op, oldest first, for people: "F0.1.3@2 waited 1.2 ms, ran 10.1 ms, ended 312.4 ms ago".
  std::string dump(Tick now) const;

 private:
  OpRecord& last();

  std::vector<OpRecord> ring_;
  std::uint64_t count_ = 0;
};

}  // namespace everstep::trainer
