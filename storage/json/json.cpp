#include "storage/json/json.h"

#include <algorithm>
#include <cmath>

namespace everstep::storage {

Json::Json(std::nullptr_t) {}

Json::Json(const char* text) : value_(std::string(text)) {}

Json::Json(std::string_view text) : value_(std::string(text)) {}

Json::Json(std::string text) : value_(std::move(text)) {}

Json::Json(Array elements) : value_(std::move(elements)) {}

Json::Json(Object members) : value_(std::move(members)) {}

Json::Json(double value) : value_(value) {
  EVERSTEP_CHECK(std::isfinite(value), "JSON has no number for infinity or NaN");
}

Json Json::array() { return Array{}; }

Json Json::object() { return Object{}; }

const Json* Json::find(std::string_view name) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, name, &JsonMember::name);
  return found == members->end() ? nullptr : &found->value;
}

Json& Json::set(std::string_view name, Json value) {
  auto* members = std::get_if<Object>(&value_);
  EVERSTEP_CHECK(members != nullptr, "only an object has members");
  const auto found = std::ranges::find(*members, name, &JsonMember::name);
  if (found == members->end()) {
    members->push_back({std::string(name), std::move(value)});
  } else {
    found->value = std::move(value);
  }
  return *this;
}

Json& Json::append(Json element) {
  auto* elements = std::get_if<Array>(&value_);
  EVERSTEP_CHECK(elements != nullptr, "only an array has elements");
  elements->push_back(std::move(element));
  return *this;
}

bool Json::operator==(const Json& other) const { return value_ == other.value_; }

}  // namespace everstep::storage
