#include "launcher/cli/quantities.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/text.h"

namespace everstep::launcher {
namespace {

std::string two_digits(std::int64_t number) { return (number < 10 ? "0" : "") + std::to_string(number); }

}  // namespace

std::string rate_text(double rate) {
  std::array<char, 32> buffer{};
  const auto [end, error] =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), rate, std::chars_format::general, 4);
  EVERSTEP_CHECK(error == std::errc(), "a rate that is too long to write");
  return {buffer.data(), end};
}

std::string loss_text(double loss) { return std::isfinite(loss) ? fixed_text(loss, 4) : "not finite"; }

std::string duration_text(double seconds) {
  struct Unit {
    std::int64_t seconds;
    char name;
  };
  constexpr std::array<Unit, 4> kUnits{{{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}};
  const auto whole = static_cast<std::int64_t>(std::clamp(std::ceil(seconds), 0.0, 1e12));
  for (std::size_t i = 0; i + 1 < kUnits.size(); ++i) {
    if (whole < kUnits[i].seconds) continue;
    return std::to_string(whole / kUnits[i].seconds) + kUnits[i].name +
           two_digits(whole % kUnits[i].seconds / kUnits[i + 1].seconds) + kUnits[i + 1].name;
  }
  return std::to_string(whole) + "s";
}

std::string speed_text(double tokens_per_s) {
  if (tokens_per_s < 1e3) return fixed_text(tokens_per_s, 0) + " tokens/s";
  if (tokens_per_s < 1e6) return fixed_text(tokens_per_s / 1e3, 1) + " ktokens/s";
  return fixed_text(tokens_per_s / 1e6, 2) + " Mtokens/s";
}

}  // namespace everstep::launcher
