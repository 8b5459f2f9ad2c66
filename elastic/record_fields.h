#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "elastic/keys.h"

namespace everstep::elastic {

// A record is described once, by a function that names its fields in order; FieldWriter and FieldReader both take that
// description. One line per field: its name, a blank, its value. Line ends inside a value are written as \n, a
// backslash as two of them.

inline constexpr std::size_t kMostRecordBytes = 1 << 20;
inline constexpr std::size_t kMostListItems = 4096;

class FieldWriter {
 public:
  void field(std::string_view name, const std::string& value) { line(name, value); }
  void field(std::string_view name, std::int64_t value);
  void field(std::string_view name, int value) { field(name, std::int64_t{value}); }
  void field(std::string_view name, bool value) { line(name, value ? "yes" : "no"); }
  void field(std::string_view name, double value);
  void measured(std::string_view name, double value) { field(name, value); }
  void hex(std::string_view name, std::uint64_t value);
  void field(std::string_view name, const WorkerId& value) { line(name, to_string(value)); }
  void field(std::string_view name, const Attempt& value) { line(name, to_string(value)); }
  template <typename Tag>
  void field(std::string_view name, const Counter<Tag>& value) {
    field(name, value.value);
  }
  // Nothing is written for nothing.
  template <typename T>
  void field(std::string_view name, const std::optional<T>& value) {
    if (value) field(name, *value);
  }
  void list(std::string_view name, const std::vector<WorkerId>& values);
  void lists(std::string_view name, const std::vector<std::vector<WorkerId>>& values);
  void numbers(std::string_view name, const std::vector<int>& values);
  void pairs(std::string_view name, const std::vector<std::pair<std::string, std::string>>& values);
  template <typename Enum, std::size_t N>
  void choice(std::string_view name, const Enum& value, const std::array<std::string_view, N>& names) {
    line(name, names.at(static_cast<std::size_t>(value)));
  }

  const std::string& text() const { return text_; }

 private:
  void line(std::string_view name, std::string_view value);

  std::string text_;
};

// Reads what FieldWriter wrote. The first thing that does not fit makes it fail for good.
class FieldReader {
 public:
  explicit FieldReader(std::string_view text);

  void field(std::string_view name, std::string& value);
  void field(std::string_view name, std::int64_t& value);
  void field(std::string_view name, int& value);
  void field(std::string_view name, bool& value);
  void field(std::string_view name, double& value);
  void measured(std::string_view name, double& value);  // may be infinite, or no number
  void hex(std::string_view name, std::uint64_t& value);
  void field(std::string_view name, WorkerId& value);
  void field(std::string_view name, Attempt& value);
  template <typename Tag>
  void field(std::string_view name, Counter<Tag>& value) {
    field(name, value.value);
  }
  template <typename T>
  void field(std::string_view name, std::optional<T>& value) {
    if (next_is(name)) field(name, value.emplace());
  }
  void list(std::string_view name, std::vector<WorkerId>& values);
  void lists(std::string_view name, std::vector<std::vector<WorkerId>>& values);
  void numbers(std::string_view name, std::vector<int>& values);
  void pairs(std::string_view name, std::vector<std::pair<std::string, std::string>>& values);
  template <typename Enum, std::size_t N>
  void choice(std::string_view name, Enum& value, const std::array<std::string_view, N>& names) {
    const std::string_view text = take(name);
    for (std::size_t i = 0; i < N; ++i) {
      if (names[i] != text) continue;
      value = static_cast<Enum>(i);
      return;
    }
    fail(name);
  }

  bool next_is(std::string_view name) const;

  // Marks the record as damaged: a field that was read makes no sense.
  void fail(std::string_view name);

  bool ok() const { return !failed_.has_value(); }
  bool at_end() const { return rest_.empty(); }
  const std::optional<std::string>& failed() const { return failed_; }  // the field that did not fit

 private:
  std::string_view take(std::string_view name);

  std::string_view rest_;
  std::optional<std::string> failed_;
};

}  // namespace everstep::elastic
