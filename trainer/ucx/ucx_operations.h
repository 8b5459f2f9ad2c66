#pragma once

#include <optional>

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
};

// A peer is gone: this one, or another one because of which it left.
struct FailedTransfer {
  Error error;
  int with = 0;
};

}  // namespace everstep::trainer
