#include "base/number_text.h"

#include <array>
#include <charconv>
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

}  // namespace everstep
