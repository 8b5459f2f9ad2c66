#include "storage/json/document_values.h"

#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"

namespace everstep::storage {
namespace {

std::optional<std::pair<std::int64_t, std::int64_t>> parse_run(const Json& json) {
  const auto* pair = std::get_if<Json::Array>(&json.value());
  if (pair == nullptr || pair->size() != 2) return std::nullopt;
  const auto* first = std::get_if<std::int64_t>(&(*pair)[0].value());
  const auto* end = std::get_if<std::int64_t>(&(*pair)[1].value());
  if (first == nullptr || end == nullptr || *first < 0 || *first >= *end) return std::nullopt;
  return std::pair(*first, *end);
}

}  // namespace

Json to_json(double value) {
  if (std::isfinite(value)) return value;
  return hex_text(std::bit_cast<std::uint64_t>(value));
}

std::optional<double> parse_double(const Json& json) {
  if (const auto* number = std::get_if<double>(&json.value())) return *number;
  const auto* text = std::get_if<std::string>(&json.value());
  const auto bits = text == nullptr ? std::nullopt : parse_hex(*text);
  if (!bits || std::isfinite(std::bit_cast<double>(*bits))) return std::nullopt;
  return std::bit_cast<double>(*bits);
}

Json to_json(const std::vector<double>& values) {
  Json json = Json::array();
  for (const double value : values) json.append(to_json(value));
  return json;
}

Json to_json(const std::optional<double>& value) { return value ? to_json(*value) : Json(nullptr); }

Json to_json(const std::optional<Digest>& digest) { return digest ? Json(to_string(*digest)) : Json(nullptr); }

Json to_json(const Settings& settings) {
  Json::Object members;
  for (const auto& [name, value] : settings) members.push_back({name, value});
  return members;
}

Json windows_to_json(const std::vector<std::int64_t>& windows) {
  Json runs = Json::array();
  for (std::size_t i = 0; i < windows.size();) {
    const std::int64_t first = windows[i];
    std::int64_t end = first;
    for (; i < windows.size() && windows[i] == end; ++i) ++end;
    runs.append(Json::Array{first, end});
  }
  return runs;
}

Result<std::vector<std::int64_t>> parse_windows(const Json::Array& runs, std::size_t most) {
  std::vector<std::int64_t> windows;
  for (const Json& element : runs) {
    const auto run = parse_run(element);
    if (!run || (!windows.empty() && run->first <= windows.back() + 1)) {
      return invalid_argument("expected runs [first, end] of windows, ascending, with gaps between");
    }
    if (static_cast<std::uint64_t>(run->second - run->first) > most - windows.size()) {
      return invalid_argument("names more than " + std::to_string(most) + " windows");
    }
    for (std::int64_t window = run->first; window < run->second; ++window) windows.push_back(window);
  }
  return windows;
}

}  // namespace everstep::storage
