#include "base/ids.h"

#include <cstddef>

namespace everstep {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::size_t kDigitsPerWord = 16;

}  // namespace

std::string to_string(const WorkerId& id) {
  std::string text;
  for (const std::uint64_t word : id.words) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kHexDigits[(word >> shift) & 0xF];
  }
  return text;
}

std::optional<WorkerId> parse_worker_id(std::string_view text) {
  WorkerId id;
  if (text.size() != kDigitsPerWord * id.words.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = kHexDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    std::uint64_t& word = id.words[i / kDigitsPerWord];
    word = (word << 4) | digit;
  }
  return id;
}

std::ostream& operator<<(std::ostream& out, const WorkerId& id) { return out << to_string(id); }

}  // namespace everstep
