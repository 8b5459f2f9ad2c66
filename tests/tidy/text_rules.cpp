#include <algorithm>
#include <regex>
#include <string_view>

#include "tests/tidy/tidy_rules.h"

namespace everstep::tidy {
namespace {

constexpr std::size_t kLongestFile = 400;

struct Pattern {
  std::regex regex;
  std::string message;
};

// The words are split here so that this file does not break its own rules.
const std::vector<Pattern>& patterns_for_all() {
  static const std::vector<Pattern> patterns = {
      {std::regex("\t"), "a tab (hint: indent with spaces)"},
      {std::regex("\r"), "a carriage return (hint: end lines with a line feed only)"},
      {std::regex("[ \t]$"), "white space at the end of the line (hint: remove it; scripts/format does so in C++)"},
      {std::regex("\\b(TO"
                  "DO|FIX"
                  "ME|XX"
                  "X)\\b"),
       "an open end (hint: finish it now, or open an issue)"},
      {std::regex(R"((^|[^A-Za-z0-9_.])/(work|root|home|Users)/)"),
       "a path of one machine (hint: take it as an option, or start from the root of the tree)"},
  };
  return patterns;
}

const std::vector<Pattern>& patterns_for_cpp() {
  static const std::vector<Pattern> patterns = {
      {std::regex("GTEST_"
                  "SKIP|DIS"
                  "ABLED_"),
       "a test that does not run (hint: select tests by CTest label instead)"},
  };
  return patterns;
}

// Clocks on the wall jump. These files may look at one: for the names of directories, for the times in logs, and for a
// cloud's word of when a machine ends, which is turned into a time from now at once.
bool may_look_at_the_wall(const std::string& path) {
  static const std::regex elsewhere("(tests|bench|examples)/.*");
  static const std::vector<std::string> allowed{"launcher/job/elastic_defaults.cpp", "launcher/worker/leave_notice.cpp",
                                                "launcher/cli/log_time.cpp", "launcher/supervise/prepared_run.cpp"};
  return std::regex_match(path, elsewhere) || std::find(allowed.begin(), allowed.end(), path) != allowed.end();
}

const std::vector<Pattern>& patterns_of_wall_clocks() {
  static const std::vector<Pattern> patterns = {
      {std::regex(R"(\b(system_clock|CLOCK_REALTIME|gettimeofday|timespec_get)\b|\btime\((nullptr|NULL|0)\))"),
       "a clock that jumps (hint: use std::chrono::steady_clock, or boot_now() for leases)"},
  };
  return patterns;
}

// Where a process that was not found would make a signal go to all there are.
bool may_signal_many(const std::string& path) {
  static const std::regex elsewhere("(tests|bench)/.*");
  return !std::regex_match(path, elsewhere) || path == "tests/send_signal.h";
}

const std::vector<Pattern>& patterns_of_signals() {
  static const std::vector<Pattern> patterns = {
      {std::regex(R"((^|[^A-Za-z0-9_>])::(kill|killpg)\()"),
       "a signal that may go to all processes (hint: use send_signal() of tests/send_signal.h)"},
  };
  return patterns;
}

void check_patterns(const SourceFile& file, const std::vector<Pattern>& patterns, Violations& violations) {
  int number = 0;
  for (const std::string_view line : lines_of(file.text)) {
    ++number;
    for (const Pattern& pattern : patterns) {
      if (std::regex_search(line.begin(), line.end(), pattern.regex)) {
        violations.push_back({file.path, number, pattern.message});
      }
    }
  }
}

void check_cpp(const SourceFile& file, Violations& violations) {
  static const std::regex snake_case("[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)*\\.(h|cpp|h\\.in)");
  const std::size_t length = lines_of(file.text).size();
  const auto report = [&](const std::string& message) { violations.push_back({file.path, 0, message}); };
  if (!std::regex_match(file.path, snake_case))
    report("a name that is not snake_case.h or snake_case.cpp (hint: rename it)");
  if (length > kLongestFile) {
    report(std::to_string(length) + " lines, more than " + std::to_string(kLongestFile) +
           " (hint: split it; a file has one subject)");
  }
  if (file.is_header() && !file.text.starts_with("#pragma once\n")) {
    report("a header that does not start with #pragma once (hint: make it the first line)");
  }
}

}  // namespace

Violations check_text(const SourceFile& file) {
  Violations violations;
  check_patterns(file, patterns_for_all(), violations);
  if (!file.text.empty() && !file.text.ends_with('\n')) {
    violations.push_back({file.path, 0, "no line feed at the end of the file (hint: add one)"});
  }
  static const std::regex any_cpp(R"(.*\.(h|h\.in|hpp|cpp|cc|cxx))");
  if (std::regex_match(file.path, any_cpp)) {
    check_patterns(file, patterns_for_cpp(), violations);
    if (!may_look_at_the_wall(file.path)) check_patterns(file, patterns_of_wall_clocks(), violations);
    if (!may_signal_many(file.path)) check_patterns(file, patterns_of_signals(), violations);
    check_cpp(file, violations);
  }
  return violations;
}

}  // namespace everstep::tidy
