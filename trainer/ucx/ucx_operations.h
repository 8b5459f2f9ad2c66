#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/frame.h"
#include "trainer/transport.h"

namespace everstep::trainer {

// A frame on its way out, and one that is waited for. UCX works on these bytes until both of its parts, header and
// payload, are over.
struct Sending {
  int to = 0;
  FrameBytes header{};
  Buffer payload;
  int parts = 0;  // not sent yet
};

struct Receiving {
  int from = 0;
  FrameHeader expected;
  Buffer into;
  FrameBytes header{};
  std::optional<WireFrame> frame;
  bool payload_is_here = false;

  bool complete() const { return frame.has_value() && payload_is_here; }

  Error late_after(std::chrono::milliseconds time) const {
    return {ErrorCode::kDeadlineExceeded,
            "the " + to_string(expected) + " did not come from worker " + std::to_string(from) + " within " +
                std::to_string(time.count()) + " ms",
            "is that worker stopped or overloaded?"};
  }
  Error damaged() const {
    return {ErrorCode::kInternal,
            "the " + to_string(expected) + " from worker " + std::to_string(from) + " was damaged on its way", ""};
  }
};

// A peer is gone: this one, or another one because of which it left.
struct FailedTransfer {
  Error error;
  int with = 0;
};

}  // namespace everstep::trainer
