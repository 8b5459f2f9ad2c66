#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/json/json.h"

namespace everstep::storage {

// A place inside a Json value that knows its path, so that each complaint names it: "blocks[3].forward_ms: expected a
// number, got a string". All errors are kInvalidArgument. It refers to the value it was made from, which must outlive
// it.
class JsonReader {
 public:
  static constexpr std::int64_t kMinInteger = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
  static constexpr double kMinNumber = std::numeric_limits<double>::lowest();
  static constexpr double kMaxNumber = std::numeric_limits<double>::max();

  explicit JsonReader(const Json& root) : json_(&root) {}

  const Json& json() const { return *json_; }

  // This value, if it has the type (and lies in the range) asked for. A number may be written as an integer.
  Result<bool> boolean() const;
  Result<std::int64_t> integer(std::int64_t min = kMinInteger, std::int64_t max = kMaxInteger) const;
  Result<double> number(double min = kMinNumber, double max = kMaxNumber) const;
  Result<std::string> text() const;
  Result<std::vector<JsonReader>> elements() const;

  // The member of that name; one that is missing is an error.
  Result<JsonReader> member(std::string_view name) const;

  // The same for the value of a member.
  Result<bool> boolean_at(std::string_view name) const;
  Result<std::int64_t> integer_at(std::string_view name, std::int64_t min = kMinInteger,
                                  std::int64_t max = kMaxInteger) const;
  Result<double> number_at(std::string_view name, double min = kMinNumber, double max = kMaxNumber) const;
  Result<std::string> text_at(std::string_view name) const;
  Result<std::vector<JsonReader>> elements_at(std::string_view name) const;

  // Whether this is an object with such a member.
  bool has(std::string_view name) const { return json_->find(name) != nullptr; }

  // Refuses members of other names: a misspelt optional member would be ignored otherwise.
  Status only(std::initializer_list<std::string_view> names) const;

  // A complaint of the caller's about this value: "blocks[3].forward_ms: must not exceed backward_ms".
  Error error(std::string_view what) const;

 private:
  JsonReader(const Json& json, std::string path) : json_(&json), path_(std::move(path)) {}

  Error expected(std::string_view what) const;

  const Json* json_;
  std::string path_;
};

}  // namespace everstep::storage
