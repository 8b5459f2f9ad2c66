#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Numbers as text and back. The locale plays no part anywhere.
namespace everstep {

// The number with exactly so many digits after the point. `value` must be finite.
std::string fixed_text(double value, int decimals);

// The number with at most so many digits after the point, without trailing zeros: number_text(2.50, 2) is "2.5".
std::string number_text(double value, int max_decimals);

// "9,600"
std::string grouped(std::int64_t number);

// "1.50 GiB"
std::string gib_text(std::int64_t bytes);

// "a, b or c"
std::string either_of(const std::vector<std::string>& names);

// "1 window", "9,600 windows"
std::string counted(std::int64_t count, std::string_view one, std::string_view many);

// The text without blanks, tabs and carriage returns at its ends.
std::string_view trimmed(std::string_view text);

// The last line that is not empty; empty if there is none.
std::string_view last_line(std::string_view text);

// The number that the whole text spells; no blanks, no sign but '-', no unit.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The fewest digits that parse_number reads back as the same number.
template <typename Number>
std::string shortest_text(Number value) {
  std::array<char, 32> buffer{};
  return {buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr};
}

// 16 lower-case hexadecimal digits, and back; nothing for any other text.
std::string hex_text(std::uint64_t number);
std::optional<std::uint64_t> parse_hex(std::string_view text);

// Two lower-case hexadecimal digits per byte, and back; nothing for any other text.
std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view text);

// " from 1 to 8", " of at least 1", " above 0 and at most 1": nothing where the range ends with the type.
template <typename Number>
std::string range_text(Number min, Number max, bool above_min = false) {
  const bool has_min = min != std::numeric_limits<Number>::lowest();
  const bool has_max = max != std::numeric_limits<Number>::max();
  if (has_min && above_min) {
    return " above " + shortest_text(min) + (has_max ? " and at most " + shortest_text(max) : "");
  }
  if (has_min && has_max) return " from " + shortest_text(min) + " to " + shortest_text(max);
  if (has_min) return " of at least " + shortest_text(min);
  return has_max ? " of at most " + shortest_text(max) : "";
}

}  // namespace everstep
