#pragma once

#include <cstdint>

#include "trainer/transport.h"

namespace everstep::trainer {

// A frame travels as two messages, so that the payload goes straight into the receiver's buffer.
enum class FramePart : std::uint8_t { kHeader, kPayload };

// What tells messages apart for UCX: `sequence` counts the frames of one sender, receiver and channel. A receive that
// is posted ahead can so name its message exactly, and messages of other channels never stand in its way.
constexpr std::uint64_t frame_tag(int from, Channel channel, FramePart part, std::uint64_t sequence) {
  return (static_cast<std::uint64_t>(from) << 48) | (static_cast<std::uint64_t>(channel) << 44) |
         (static_cast<std::uint64_t>(part) << 43) | sequence;
}

}  // namespace everstep::trainer
