#include "trainer/wire/frame.h"

#include <algorithm>
#include <iterator>

#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::uint32_t kMagic = 0x50455645;  // "EVEP"
constexpr std::uint16_t kFrameFormat = 3;
constexpr std::size_t kReservedBytes = 24;
constexpr std::size_t kChecksumOffset = kFrameHeaderBytes - sizeof(std::uint64_t);

constexpr std::string_view kKindNames[] = {
    "activation",   "input gradient",     "replica sum", "group sum", "total",      "tied sum", "weights",
    "captured sum", "captured group sum", "record",      "records",   "state size", "resume",   "state",
    "copy",         "NCCL link",          "credit"};

Error not_a_frame(const std::string& why) {
  return invalid_argument("a frame header is not valid: " + why, "does something else send to this port?");
}

Error not_expected(ErrorCode code, const std::string& difference, const FrameHeader& received,
                   const FrameHeader& expected) {
  return {code,
          "received the " + to_string(received) + " where the " + to_string(expected) + " was expected: " + difference,
          "do all workers run the same plan and options?"};
}

// The fields that travel as they are, in their order on the wire: one list for both directions.
void visit_fields(auto& header, auto visit) {
  visit(header.lineage);
  visit(header.generation.value);
  visit(header.window);
  visit(header.round);
  visit(header.minibatch);
  visit(header.stage);
  visit(header.piece);
  visit(header.version.value);
  visit(header.length);
}

std::string both(std::string_view what, auto received, auto expected) {
  return std::string(what) + " " + std::to_string(received) + " instead of " + std::to_string(expected);
}

}  // namespace

std::string_view to_string(FrameKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::string to_string(const FrameHeader& header) {
  return std::string(to_string(header.kind)) + " of window " + std::to_string(header.window) + ", round " +
         std::to_string(header.round) + ", minibatch " + std::to_string(header.minibatch) + ", stage " +
         std::to_string(header.stage) + ", piece " + std::to_string(header.piece);
}

std::uint64_t byte_checksum(std::span<const std::byte> bytes) {
  std::uint64_t sum = 0xCBF29CE484222325;
  for (const std::byte byte : bytes) sum = (sum ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001B3;
  return sum;
}

FrameBytes encode_frame(const FrameHeader& header) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(kFrameFormat);
  writer.put(static_cast<std::uint16_t>(header.kind));
  visit_fields(header, [&](auto field) { writer.put(field); });
  for (std::size_t i = 0; i < kReservedBytes; ++i) writer.put(std::uint8_t{0});
  writer.put(byte_checksum(writer.bytes()));
  FrameBytes bytes{};
  EVERSTEP_CHECK(writer.bytes().size() == bytes.size(), "the frame's fields do not fill its header");
  std::copy(writer.bytes().begin(), writer.bytes().end(), bytes.begin());
  return bytes;
}

Result<FrameHeader> decode_frame(std::span<const std::byte> bytes) {
  if (bytes.size() != kFrameHeaderBytes) {
    return not_a_frame("it has " + both("length", bytes.size(), kFrameHeaderBytes));
  }
  WireReader reader(bytes);
  if (reader.get<std::uint32_t>() != kMagic) return not_a_frame("it does not start with the magic number");
  const auto format = reader.get<std::uint16_t>();
  if (format != kFrameFormat) return not_a_frame("it has " + both("format", format, kFrameFormat));
  if (WireReader(bytes.subspan(kChecksumOffset)).get<std::uint64_t>() != byte_checksum(bytes.first(kChecksumOffset))) {
    return not_a_frame("its checksum is wrong");
  }
  FrameHeader header;
  const auto kind = reader.get<std::uint16_t>();
  if (kind >= std::size(kKindNames)) return not_a_frame("there is no kind " + std::to_string(kind));
  header.kind = static_cast<FrameKind>(kind);
  visit_fields(header, [&](auto& field) { reader.get(field); });
  for (std::size_t i = 0; i < kReservedBytes; ++i) {
    if (reader.get<std::uint8_t>() != 0) return not_a_frame("its reserved bytes are used");
  }
  return header;
}

Status check_frame(const FrameHeader& received, const FrameHeader& expected) {
  const auto refuse = [&](ErrorCode code, const std::string& difference) {
    return not_expected(code, difference, received, expected);
  };
  if (received.lineage != expected.lineage) {
    return refuse(ErrorCode::kStaleGeneration, both("lineage", received.lineage, expected.lineage));
  }
  if (received.generation != expected.generation) {
    return refuse(ErrorCode::kStaleGeneration,
                  both("generation", received.generation.value, expected.generation.value));
  }
  if (received.length != expected.length) {
    return refuse(ErrorCode::kInternal, both("length", received.length, expected.length));
  }
  if (received.version.value < expected.version.value - 1 || received.version.value > expected.version.value + 1) {
    return refuse(ErrorCode::kInternal, both("version", received.version.value, expected.version.value));
  }
  FrameHeader same_version = received;
  same_version.version = expected.version;
  if (same_version != expected) return refuse(ErrorCode::kInternal, "another frame");
  return {};
}

}  // namespace everstep::trainer
