#include "launcher/train/hex.h"

#include <charconv>

namespace everstep::launcher {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";

template <typename Number>
std::optional<Number> parse_digits(std::string_view text) {
  if (text.size() != 2 * sizeof(Number) || text.find_first_not_of(kDigits) != std::string_view::npos) return {};
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

}  // namespace

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string bytes;
  for (; !text.empty(); text.remove_prefix(2)) {
    const auto value = parse_digits<unsigned char>(text.substr(0, 2));
    if (!value) return std::nullopt;
    bytes += static_cast<char>(*value);
  }
  return bytes;
}

std::string hex_text(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(number >> shift) & 15];
  return text;
}

std::optional<std::uint64_t> parse_hex(std::string_view text) { return parse_digits<std::uint64_t>(text); }

}  // namespace everstep::launcher
