#include "storage/json/json_reader.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace everstep::storage {
namespace {

// Numbers are shown, since what is wrong may be their size; strings may be long, and their type is the news.
std::string describe(const Json& json) {
  if (std::holds_alternative<std::int64_t>(json.value()) || std::holds_alternative<double>(json.value())) {
    return to_text(json, 0);
  }
  constexpr std::array<std::string_view, std::variant_size_v<Json::Value>> kNames = {
      "null", "a boolean", "an integer", "a number", "a string", "an array", "an object"};
  return std::string(kNames[json.value().index()]);
}

}  // namespace

Error JsonReader::error(std::string_view what) const {
  return invalid_argument((path_.empty() ? "top level" : path_) + ": " + std::string(what));
}

Error JsonReader::expected(std::string_view what) const {
  return error("expected " + std::string(what) + ", got " + describe(*json_));
}

Result<bool> JsonReader::boolean() const {
  if (const auto* value = std::get_if<bool>(&json_->value())) return *value;
  return expected("true or false");
}

Result<std::int64_t> JsonReader::integer(std::int64_t min, std::int64_t max) const {
  const auto* value = std::get_if<std::int64_t>(&json_->value());
  if (value == nullptr || *value < min || *value > max) return expected("an integer" + range_text(min, max));
  return *value;
}

Result<double> JsonReader::number(double min, double max) const {
  const auto* whole = std::get_if<std::int64_t>(&json_->value());
  const auto* real = std::get_if<double>(&json_->value());
  if (whole == nullptr && real == nullptr) return expected("a number" + range_text(min, max));
  const double value = whole != nullptr ? static_cast<double>(*whole) : *real;
  if (value < min || value > max) return expected("a number" + range_text(min, max));
  return value;
}

Result<std::string> JsonReader::text() const {
  if (const auto* value = std::get_if<std::string>(&json_->value())) return *value;
  return expected("a string");
}

Result<std::vector<JsonReader>> JsonReader::elements() const {
  const auto* array = std::get_if<Json::Array>(&json_->value());
  if (array == nullptr) return expected("an array");
  std::vector<JsonReader> readers;
  readers.reserve(array->size());
  for (const Json& element : *array) {
    readers.push_back(JsonReader(element, path_ + "[" + std::to_string(readers.size()) + "]"));
  }
  return readers;
}

Result<JsonReader> JsonReader::member(std::string_view name) const {
  if (!std::holds_alternative<Json::Object>(json_->value())) return expected("an object");
  const std::string path = path_.empty() ? std::string(name) : path_ + "." + std::string(name);
  const Json* found = json_->find(name);
  if (found == nullptr) return JsonReader(*json_, path).error("missing");
  return JsonReader(*found, path);
}

Result<bool> JsonReader::boolean_at(std::string_view name) const {
  const auto value = member(name);
  return value ? value->boolean() : value.error();
}

Result<std::int64_t> JsonReader::integer_at(std::string_view name, std::int64_t min, std::int64_t max) const {
  const auto value = member(name);
  return value ? value->integer(min, max) : value.error();
}

Result<double> JsonReader::number_at(std::string_view name, double min, double max) const {
  const auto value = member(name);
  return value ? value->number(min, max) : value.error();
}

Result<std::string> JsonReader::text_at(std::string_view name) const {
  const auto value = member(name);
  return value ? value->text() : value.error();
}

Result<std::vector<JsonReader>> JsonReader::elements_at(std::string_view name) const {
  const auto value = member(name);
  return value ? value->elements() : value.error();
}

Status JsonReader::only(std::initializer_list<std::string_view> names) const {
  const auto* members = std::get_if<Json::Object>(&json_->value());
  if (members == nullptr) return expected("an object");
  for (const JsonMember& member : *members) {
    if (std::ranges::find(names, member.name) != names.end()) continue;
    std::string known;
    for (const std::string_view name : names) known.append(known.empty() ? "" : ", ").append(name);
    constexpr std::size_t kShown = 40;
    Error unknown = error("unknown member '" + member.name.substr(0, kShown) + "'");
    unknown.hint = "known are " + known;
    return unknown;
  }
  return {};
}

}  // namespace everstep::storage
