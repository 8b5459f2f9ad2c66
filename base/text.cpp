#include "base/text.h"

#include <cmath>

#include "base/check.h"

namespace everstep {

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

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace everstep
