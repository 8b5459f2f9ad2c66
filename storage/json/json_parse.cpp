#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "storage/json/json.h"

namespace everstep::storage {
namespace {

// "line 3, column 7" of the byte at `offset`, which may lie one past the end.
std::string place(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const auto lines = std::ranges::count(before, '\n');
  const std::string_view line = before.substr(before.rfind('\n') + 1);
  const auto characters = std::ranges::count_if(line, [](char c) { return (static_cast<unsigned char>(c) >> 6) != 2; });
  return "line " + std::to_string(lines + 1) + ", column " + std::to_string(characters + 1);
}

// An input iterator that tells how far the parser has read: the SAX interface does not say where an event happened.
class Cursor {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the names of the standard library
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  Cursor(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}

  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

// Builds a Json from the parser's events and stops it (by returning false) at the first one that breaks a rule.
class Builder {
 public:
  Builder(std::string_view text, const JsonLimits& limits) : text_(text), furthest_(text.data()), limits_(limits) {}

  Cursor begin() { return {text_.data(), &furthest_}; }
  Cursor end() { return {text_.data() + text_.size(), &furthest_}; }
  Json take_root() { return std::move(root_); }
  const std::optional<Error>& error() const { return error_; }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    return std::in_range<std::int64_t>(value) ? add(value) : refuse_integer(std::to_string(value));
  }
  // Integers beyond 64 bits arrive here too, rounded.
  bool number_float(double value, const std::string& digits) {
    return digits.find_first_not_of("-0123456789") == std::string::npos ? refuse_integer(digits) : add(value);
  }
  bool start_array(std::size_t) { return open(false); }
  bool start_object(std::size_t) { return open(true); }
  bool end_array() { return close(); }
  bool end_object() { return close(); }
  // Text has no such values; the parser's interface asks for it.
  bool binary(nlohmann::json::binary_t&) { return false; }

  bool key(std::string& name) {
    if (!open_.back().names.insert(name).second) {
      return refuse(start_of_string(), "this member name is already used in the object");
    }
    open_.back().members.push_back({std::move(name), nullptr});
    return true;
  }

  bool parse_error(std::size_t bytes_read, const std::string& token, const nlohmann::json::exception& exception) {
    const std::string_view what = exception.what();
    const std::size_t syntax = what.find("syntax error");
    if (syntax == std::string_view::npos) {
      return refuse(bytes_read - token.size(), "the number is too large for a double");
    }
    // What the parser read last is left out: it may be long, and need not be UTF-8.
    return refuse(bytes_read - 1, what.substr(syntax, what.find("; last read") - syntax));
  }

 private:
  // An array or object whose end was not read yet. The last member waits for its value.
  struct Level {
    bool is_object = false;
    Json::Array elements{};
    Json::Object members{};
    std::set<std::string> names{};  // ordered, because hostile names could collide in a hash table
  };

  bool refuse(std::size_t offset, std::string_view why) {
    error_ = invalid_argument(place(text_, offset) + ": " + std::string(why));
    return false;
  }

  bool refuse_integer(std::string_view digits) {
    // The parser may have read one byte beyond the digits.
    return refuse(text_.rfind(digits, bytes_read() - digits.size()), "the integer does not fit in 64 bits with sign");
  }

  std::size_t bytes_read() const { return static_cast<std::size_t>(furthest_ - text_.data()); }

  // Where the string that was just read begins: inside it, each quote has a backslash before it.
  std::size_t start_of_string() const {
    std::size_t at = text_.rfind('"', bytes_read() - 2);
    while (at > 0 && text_[at - 1] == '\\') at = text_.rfind('"', at - 1);
    return at;
  }

  bool add(Json value) {
    if (!count_value()) return false;
    attach(std::move(value));
    return true;
  }

  bool count_value() {
    if (++values_ <= limits_.values) return true;
    return refuse(bytes_read() - 1, "more than " + std::to_string(limits_.values) + " values");
  }

  void attach(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
    } else if (open_.back().is_object) {
      open_.back().members.back().value = std::move(value);
    } else {
      open_.back().elements.push_back(std::move(value));
    }
  }

  bool open(bool is_object) {
    if (open_.size() == limits_.depth) {
      return refuse(bytes_read() - 1, "nested deeper than " + std::to_string(limits_.depth) + " levels");
    }
    open_.push_back({.is_object = is_object});
    return count_value();
  }

  bool close() {
    Level level = std::move(open_.back());
    open_.pop_back();
    attach(level.is_object ? Json(std::move(level.members)) : Json(std::move(level.elements)));
    return true;
  }

  std::string_view text_;
  const char* furthest_;
  const JsonLimits& limits_;
  std::vector<Level> open_;
  std::size_t values_ = 0;
  Json root_;
  std::optional<Error> error_;
};

}  // namespace

Result<Json> parse_json(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    return invalid_argument("the text has " + std::to_string(text.size()) + " bytes, the limit is " +
                            std::to_string(limits.bytes));
  }
  // The parser takes a NUL for the end of the text and would accept what stands before it.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return invalid_argument(place(text, nul) + ": a NUL byte");
  }
  Builder builder(text, limits);
  const bool complete = nlohmann::json::sax_parse(builder.begin(), builder.end(), &builder);
  if (builder.error()) return *builder.error();
  EVERSTEP_CHECK(complete, "the parser stopped without a reason");
  return builder.take_root();
}

}  // namespace everstep::storage
