#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "base/result.h"

namespace everstep::trainer {

enum class FrameKind : std::uint8_t {
  kActivation,        // a stage's output, to the next stage
  kInputGradient,     // of a stage's input, to the stage before
  kReplicaSum,        // a replica's accumulated gradient, to the stage's owner in its group
  kGroupSum,          // a group's accumulated gradient, to the root group's owner
  kTotal,             // the sum over all groups, from the root group's owner to the other owners
  kTiedSum,           // gradient of tied parameters, between the owners of the first and the last stage
  kWeights,           // new weights, from a stage's owner to its replicas
  kCapturedSum,       // a replica's gradient as it stood at a cut inside a window, to the stage's owner in its group
  kCapturedGroupSum,  // a group's, to the root group's owner
  kRecord,            // a worker's part of the update exchange, to worker 0
  kRecords,           // all parts, from worker 0
  kStateSize,         // how long the frame is that says where a newcomer goes on
  kResume,            // that frame
  kState,             // a block's state, from a worker that holds it to one that needs it
  kCopy,              // a stage's owner state, from the owner to a guard
  kNccl,              // what two workers say to each other while they make their links (trainer/nccl)
  kCredit,            // "send now", from a receiver whose buffer is ready
};

std::string_view to_string(FrameKind kind);

// What travels in front of every payload, and what both ends must agree on before a byte of it is used. Fields that a
// kind does not use are 0. Long payloads travel in pieces: `piece` counts them.
struct FrameHeader {
  std::uint64_t lineage = 0;  // the job's history, a random number
  Generation generation;
  FrameKind kind = FrameKind::kActivation;
  std::int64_t window = 0;
  std::int32_t round = 0;
  std::int32_t minibatch = 0;
  std::int32_t stage = 0;
  std::int32_t piece = 0;
  Version version;           // of the weights that made the payload
  std::uint64_t length = 0;  // of the payload in bytes

  bool operator==(const FrameHeader&) const = default;
};

// For messages: "activation of window 3, round 0, minibatch 5, stage 2, piece 0".
std::string to_string(const FrameHeader& header);

// A header on the wire: little-endian fields behind a magic number and a format number, and a checksum of all that at
// the end, so that noise is told from a frame. The payload has none: what carries it keeps it whole.
inline constexpr std::size_t kFrameHeaderBytes = 96;
using FrameBytes = std::array<std::byte, kFrameHeaderBytes>;

// FNV-1a. Any single changed byte changes it. For short texts: it does about 1 GB/s.
std::uint64_t byte_checksum(std::span<const std::byte> bytes);

FrameBytes encode_frame(const FrameHeader& header);

// kInvalidArgument for anything that encode_frame did not make.
Result<FrameHeader> decode_frame(std::span<const std::byte> bytes);

// Whether this is the frame that the plan says comes next: all fields equal but the version, which differs by at most
// one. kStaleGeneration if it belongs to another lineage or generation, else kInternal; the message names both sides.
Status check_frame(const FrameHeader& received, const FrameHeader& expected);

}  // namespace everstep::trainer
