#include "trainer/data/plausible.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace everstep::trainer {
namespace {

constexpr std::int64_t kStretches = 64;
constexpr std::int64_t kStretchBytes = std::int64_t{1} << 20;
constexpr std::int64_t kFewestBytes = 64;  // to conclude anything from
constexpr std::string_view kFormats = "text, bin (16-bit tokens), bin32 (32-bit tokens) or megatron";

// visit(index) for the tokens that are looked at, stretch by stretch, each beginning at an even index.
template <typename Visit>
void look_at(const TokenSpan& tokens, Visit visit) {
  const std::int64_t stretch = kStretchBytes / static_cast<std::int64_t>(size_of(tokens.type));
  const std::int64_t size = tokens.size();
  const bool looks_at_all = size <= kStretches * stretch;
  const std::int64_t count = looks_at_all ? 1 : kStretches;
  const std::int64_t length = looks_at_all ? size : stretch;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = (looks_at_all ? 0 : (size - length) / (count - 1) * i) / 2 * 2;
    for (std::int64_t index = begin; index < begin + length; ++index) visit(index);
  }
}

TokenSpan as_bytes(const TokenSpan& tokens) { return {TokenType::kUint8, tokens.bytes}; }

// Control characters that no text has; what is left is text in some encoding.
bool is_control(std::int64_t byte) {
  constexpr std::string_view kUsual = "\t\n\v\f\r\b\x1b";
  return (byte < 0x20 && kUsual.find(static_cast<char>(byte)) == std::string_view::npos) || byte == 0x7F;
}

struct ByteCounts {
  std::int64_t all = 0;
  std::int64_t zeros = 0;
  std::int64_t controls = 0;  // zeros included
  std::int64_t ascii = 0;     // neither control characters nor above 127

  bool is_text() const { return zeros == 0 && controls * 50 <= all; }
};

ByteCounts count_bytes(const TokenSpan& tokens) {
  ByteCounts counts;
  const TokenSpan bytes = as_bytes(tokens);
  look_at(bytes, [&](std::int64_t index) {
    const std::int64_t byte = bytes.at(index);
    ++counts.all;
    counts.zeros += byte == 0 ? 1 : 0;
    counts.controls += is_control(byte) ? 1 : 0;
    counts.ascii += byte < 0x80 && !is_control(byte) ? 1 : 0;
  });
  return counts;
}

}  // namespace

Status check_is_text(const TokenSpan& bytes, const std::string& name) {
  const ByteCounts counts = count_bytes(bytes);
  if (counts.all < kFewestBytes || counts.is_text()) return {};
  const std::string what = counts.zeros > 0 ? counted(counts.zeros, "byte is", "bytes are") + " 0"
                                            : std::to_string(counts.controls) + " bytes are control characters";
  return invalid_argument(
      name + ": is to be read as text because of its name, but is none: of " + std::to_string(counts.all) + ", " + what,
      "--data-format says what it is: " + std::string(kFormats) +
          "; with text its bytes are the tokens, whatever they are");
}

Status check_is_no_text(const TokenSpan& tokens, const std::string& name) {
  const ByteCounts counts = count_bytes(tokens);
  if (counts.all < kFewestBytes || counts.ascii < counts.all) return {};
  return invalid_argument(name + ": is to be read as 16-bit tokens because of its name, but is plain text",
                          "--data-format=text reads it as such");
}

Status check_is_not_wider(const TokenSpan& tokens, const std::string& name) {
  if (tokens.type != TokenType::kUint16) return {};
  constexpr std::int64_t kLargestUpperHalf = 15;  // ids of 32 bits below 2^20
  std::int64_t lower = 0;                         // the largest at even places
  std::int64_t upper = 0;                         // and at odd ones
  std::int64_t count = 0;
  look_at(tokens, [&](std::int64_t index) {
    std::int64_t& half = index % 2 == 0 ? lower : upper;
    half = std::max(half, tokens.at(index));
    ++count;
  });
  const bool is_wider = upper == 0 ? lower > 0 : upper <= kLargestUpperHalf && lower > (upper << 8);
  if (count * 2 < kFewestBytes || !is_wider) return {};
  return invalid_argument(name + ": is to be read as 16-bit tokens, but every second one of them is " +
                              (upper == 0 ? "0" : "at most " + std::to_string(upper)) +
                              ": its tokens are 32 or 64 bits wide",
                          "--data-format=bin32 reads 32-bit tokens; nanoGPT writes numpy.uint16");
}

TokenIds ids_of(const TokenSpan& tokens) {
  constexpr std::int64_t kMostIds = std::int64_t{1} << 24;  // larger ones fit no vocabulary
  TokenIds ids;
  std::vector<bool> seen;
  look_at(tokens, [&](std::int64_t index) {
    const std::int64_t id = tokens.at(index);
    if (ids.looked_at++ == 0 || id > ids.largest) {
      ids.largest = id;
      ids.place_of_largest = index;
    }
    if (id < 0 || id >= kMostIds) return;
    if (id >= std::ssize(seen)) seen.resize(static_cast<std::size_t>(id) + 1);
    ids.used += seen[id] ? 0 : 1;
    seen[id] = true;
  });
  return ids;
}

}  // namespace everstep::trainer
