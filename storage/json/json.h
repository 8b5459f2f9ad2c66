#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace everstep::storage {

struct JsonMember;

// One JSON value. An object keeps the order in which its members were added, so that a file we write reads as we meant
// it. Integers are 64-bit signed and stay apart from other numbers: 1 and 1.0 are different values, in text as well.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object>;

  Json() = default;
  // NOLINTBEGIN(google-explicit-constructor): a literal stands for its value, as it does in JSON.
  Json(std::nullptr_t);
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  Json(Array elements);
  Json(Object members);
  // JSON has no infinity and no NaN: the caller decides what to write in their place. CHECKs that the value is finite.
  Json(double value);
  // bool stays bool. CHECKs that other integers fit in 64 bits with sign.
  template <std::integral Integer>
  Json(Integer value);
  // NOLINTEND(google-explicit-constructor)

  static Json array();
  static Json object();

  const Value& value() const { return value_; }

  // The member of that name; null if there is none, or if this is no object. Valid until this value changes.
  const Json* find(std::string_view name) const;

  // Adds a member at the end, or replaces the value of the one that has this name. This must be an object.
  Json& set(std::string_view name, Json value);

  // Adds an element at the end. This must be an array.
  Json& append(Json element);

  bool operator==(const Json& other) const;

 private:
  Value value_;
};

struct JsonMember {
  std::string name;
  Json value;

  bool operator==(const JsonMember&) const = default;
};

template <std::integral Integer>
Json::Json(Integer value) {
  if constexpr (std::same_as<Integer, bool>) {
    value_ = value;
  } else {
    EVERSTEP_CHECK(std::in_range<std::int64_t>(value), "an integer in JSON has 64 bits with sign");
    value_ = static_cast<std::int64_t>(value);
  }
}

// What a text may cost at most. Each limit is applied while reading, so a hostile text is refused before it grows.
struct JsonLimits {
  std::size_t bytes = std::size_t{16} << 20;
  std::size_t depth = 64;          // nested arrays and objects
  std::size_t values = 1'000'000;  // of any kind, at any depth

  bool operator==(const JsonLimits&) const = default;
};

// Reads one JSON text (RFC 8259, UTF-8). Refused besides syntax errors: repeated member names, anything after the
// value, integers beyond 64 bits with sign, numbers too large for a double, NUL bytes, invalid UTF-8 and lone
// surrogates. The error is kInvalidArgument and starts with the place: "line 3, column 7: …"; columns count characters.
Result<Json> parse_json(std::string_view text, const JsonLimits& limits = {});

// The text of a value: on one line with `indent` 0, else with that many blanks per level; no newline at the end.
// parse_json gives back an equal value. Doubles have the fewest digits that do so. Bytes of a string that are not UTF-8
// become U+FFFD: the text is valid whatever a file name held.
std::string to_text(const Json& json, std::size_t indent = 2);

}  // namespace everstep::storage
