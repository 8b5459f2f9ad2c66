#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/result.h"
#include "trainer/loop/op_stream.h"
#include "trainer/model/device_memory.h"
#include "trainer/recovery/super_rounds.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// The worker that makes the input of a forward or backward, and what its frame says. Inputs of stage 0's forward and of
// the last stage's backward are made at home: from < 0.
struct InputSource {
  int from = -1;
  FrameHeader header;
};

// The tensors that a worker's next ops need, received ahead in the order of its list (which is the order in which each
// peer sends them).
class InputQueue {
 public:
  // `stream` and `memory`, where the tensors are to be, must outlive it. Every tensor has `bytes` bytes.
  InputQueue(Transport& transport, const OpStream& stream, const FrameHeader& job, std::size_t bytes,
             DeviceMemory& memory);

  // Posts receives for ops from `index` on, a few ahead, but none for super-rounds after `last_certain`, which a stop
  // may yet cancel. `version` is that of the weights before op `index`.
  void post_ahead(std::int64_t index, const SuperRounds::Place& last_certain, Version version);

  // Waits for the input of the op at `index`, which must have been posted. Empty for inputs made at home. After an
  // error the input is still to be taken.
  Result<Buffer> take(std::int64_t index, std::chrono::milliseconds timeout);

  // Whether take() would return at once.
  bool has_come(std::int64_t index) const {
    return posted_.empty() || posted_.front().index != index || transport_.ready(posted_.front().receive);
  }

  // The last super-round that it has looked ahead into: the stream may not end before it any more.
  const std::optional<SuperRounds::Place>& furthest() const { return furthest_; }

 private:
  struct Posted {
    std::int64_t index;
    ReceiveId receive;
    Buffer buffer;
  };

  Transport& transport_;
  const OpStream& stream_;
  FrameHeader job_;
  std::size_t bytes_;
  DeviceMemory& memory_;
  std::int64_t scanned_ = 0;  // ops looked at so far
  std::optional<SuperRounds::Place> furthest_;
  std::deque<Posted> posted_;
};

InputSource input_of(const scheduler::Schedule& schedule, int worker, const scheduler::Op& op, const FrameHeader& job);

// Where the output of a forward or backward goes, and its frame. to < 0 when nobody needs it: the last stage's forward
// and stage 0's backward.
struct OutputTarget {
  int to = -1;
  FrameHeader header;
};

OutputTarget output_of(const scheduler::Schedule& schedule, int worker, const scheduler::Op& op,
                       const FrameHeader& job);

}  // namespace everstep::trainer
