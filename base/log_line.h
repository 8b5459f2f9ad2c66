#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace everstep {

// Builds one event in logfmt: `event=plan_chosen depth=8 reason="fastest that fits"`. Event names are stable: people
// and programs search for them. The line has no newline, and no value can smuggle one in.
class LogLine {
 public:
  explicit LogLine(std::string_view event) { add("event", event); }

  LogLine& add(std::string_view key, std::string_view value);
  LogLine& add(std::string_view key, const char* value) { return add(key, std::string_view(value)); }
  LogLine& add(std::string_view key, double value);
  LogLine& add(std::string_view key, bool value) { return add(key, std::string_view(value ? "true" : "false")); }
  LogLine& add(std::string_view key, std::integral auto value) { return add(key, std::to_string(value)); }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace everstep
