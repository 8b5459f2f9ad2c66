#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cli/config.h"

namespace everstep::launcher {

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

struct NumberRange {
  double min = std::numeric_limits<double>::lowest();
  double max = std::numeric_limits<double>::max();
  bool above_min = false;  // min itself is not allowed
};

// Reads the typed values of a command, all of them before it starts to work:
//
//   Values values(config);
//   const auto workers = values.integer("workers", {.min = 1});
//   const auto kind = values.choice("kind", {"amdp", "1f1b"});
//   if (values.failure()) return values.failure();
//
// The first value that does not fit becomes the failure, which names option, value, source and what is allowed. That
// getter and a getter of a value that is not set return zero, false or nothing, which must not be used.
class Values {
 public:
  explicit Values(const Config& config) : config_(config) {}

  std::int64_t integer(std::string_view name, IntegerRange range = {});
  double number(std::string_view name, NumberRange range = {});
  // One or more numbers with commas between them.
  std::vector<double> numbers(std::string_view name, NumberRange range = {});
  // The index of the value among the names.
  std::size_t choice(std::string_view name, const std::vector<std::string>& names);
  // true or false.
  bool flag(std::string_view name);
  // Any text, the empty one too.
  std::string text(std::string_view name);
  // A text that is not empty.
  std::string path(std::string_view name);

  const Outcome& failure() const { return failure_; }

 private:
  // Null if there is no value, which is a failure.
  const std::string* find(std::string_view name);
  void complain(std::string_view name, std::string_view why, std::string hint = {});

  const Config& config_;
  Outcome failure_;
};

}  // namespace everstep::launcher
