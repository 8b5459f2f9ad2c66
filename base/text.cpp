#include "base/text.h"

#include <cmath>

#include "base/check.h"

namespace everstep {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";

template <typename Number>
std::optional<Number> parse_hex_digits(std::string_view text) {
  if (text.size() != 2 * sizeof(Number) || text.find_first_not_of(kHexDigits) != std::string_view::npos) return {};
  Number number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

}  // namespace

std::string fixed_text(double value, int decimals) {
  EVERSTEP_CHECK(std::isfinite(value), "a number to write that is not finite");
  // The largest double has 309 digits before the point.
  std::array<char, 512> buffer{};
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed, decimals);
  EVERSTEP_CHECK(error == std::errc(), "too many decimals");
  return {buffer.data(), end};
}

std::string number_text(double value, int max_decimals) {
  std::string text = fixed_text(value, max_decimals);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::ptrdiff_t first_digit = number < 0 ? 1 : 0;
  for (auto place = std::ssize(text) - 3; place > first_digit; place -= 3) {
    text.insert(static_cast<std::size_t>(place), 1, ',');
  }
  return text;
}

std::string gib_text(std::int64_t bytes) { return fixed_text(static_cast<double>(bytes) / (1 << 30), 2) + " GiB"; }

std::string either_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

std::string counted(std::int64_t count, std::string_view one, std::string_view many) {
  return grouped(count) + " " + std::string(count == 1 ? one : many);
}

std::string_view last_line(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  const std::size_t before = text.rfind('\n');
  return before == std::string_view::npos ? text : text.substr(before + 1);
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text += {kHexDigits[value >> 4], kHexDigits[value & 15]};
  }
  return text;
}

std::optional<std::string> from_hex(std::string_view text) {
  std::string bytes;
  for (; !text.empty(); text.remove_prefix(2)) {
    const auto value = parse_hex_digits<unsigned char>(text.substr(0, 2));
    if (!value) return std::nullopt;
    bytes += static_cast<char>(*value);
  }
  return bytes;
}

std::string hex_text(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kHexDigits[(number >> shift) & 15];
  return text;
}

std::optional<std::uint64_t> parse_hex(std::string_view text) { return parse_hex_digits<std::uint64_t>(text); }

}  // namespace everstep
