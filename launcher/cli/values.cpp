#include "launcher/cli/values.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "launcher/cli/nearest.h"

namespace everstep::launcher {
namespace {

// Infinity and NaN lie in no range.
bool lies_in(double value, const NumberRange& range) {
  return value >= range.min && value <= range.max && !(range.above_min && value == range.min);
}

}  // namespace

void Values::complain(std::string_view name, std::string_view why, std::string hint) {
  if (!failure_) failure_ = config_.reject(name, why, std::move(hint));
}

const std::string* Values::find(std::string_view name) {
  const Setting& setting = config_.setting(name);
  if (setting.text) return &*setting.text;
  if (!failure_) {
    failure_ = Failure(invalid_argument("--" + setting.name + " is missing",
                                        "everstep " + config_.command + " --help says what it is"),
                       ExitCode::kUsage);
  }
  return nullptr;
}

std::int64_t Values::integer(std::string_view name, IntegerRange range) {
  const std::string* text = find(name);
  if (text == nullptr) return 0;
  const auto value = parse_number<std::int64_t>(*text);
  if (value && *value >= range.min && *value <= range.max) return *value;
  complain(name, "expected an integer" + range_text(range.min, range.max, false));
  return 0;
}

double Values::number(std::string_view name, NumberRange range) {
  const std::string* text = find(name);
  if (text == nullptr) return 0;
  const auto value = parse_number<double>(*text);
  if (value && lies_in(*value, range)) return *value;
  complain(name, "expected a number" + range_text(range.min, range.max, range.above_min));
  return 0;
}

std::vector<double> Values::numbers(std::string_view name, NumberRange range) {
  const std::string* text = find(name);
  if (text == nullptr) return {};
  std::vector<double> values;
  for (std::string_view rest = *text;; rest.remove_prefix(rest.find(',') + 1)) {
    const auto value = parse_number<double>(rest.substr(0, rest.find(',')));
    if (!value || !lies_in(*value, range)) {
      complain(name,
               "expected numbers" + range_text(range.min, range.max, range.above_min) + " with commas between them");
      return {};
    }
    values.push_back(*value);
    if (rest.find(',') == std::string_view::npos) return values;
  }
}

std::size_t Values::choice(std::string_view name, const std::vector<std::string>& names) {
  const std::string* text = find(name);
  if (text == nullptr) return 0;
  const auto found = std::ranges::find(names, *text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  complain(name, "expected one of " + comma_list(names), did_you_mean(nearest_name(*text, names)));
  return 0;
}

bool Values::flag(std::string_view name) {
  const std::string* text = find(name);
  if (text == nullptr || *text == "false") return false;
  if (*text != "true") complain(name, "expected true or false");
  return *text == "true";
}

std::string Values::text(std::string_view name) {
  const std::string* text = find(name);
  return text == nullptr ? "" : *text;
}

std::string Values::path(std::string_view name) {
  const std::string* text = find(name);
  if (text == nullptr) return {};
  if (text->empty()) complain(name, "expected a path");
  return *text;
}

}  // namespace everstep::launcher
