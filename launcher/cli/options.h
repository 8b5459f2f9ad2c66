#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::launcher {

// One setting, under the same name everywhere: `--memory-gib=40`, EVERSTEP_MEMORY_GIB=40, `memory-gib = 40` in a file.
struct OptionSpec {
  std::string name{};          // lower case, words joined by '-', at least two letters
  std::string value_name{};    // what help shows after '='; empty for a flag, which is true or false
  std::string default_text{};  // empty: not set unless given; a flag is then false
  std::string help{};          // one sentence without a full stop
  bool required = false;       // the command cannot run without it
  // Names a file to write. Elsewhere than on the command line it is ignored: a file or an environment that serves all
  // commands must not overwrite what another command reads under the same name.
  bool command_line_only = false;
  std::string implicit_text{};  // what the option means without a value; empty: it needs one
  // What other programs, or older versions of this one, call it. Never taken, but answered with the right name.
  std::vector<std::string> called_elsewhere{};

  bool is_flag() const { return value_name.empty(); }
  // What it is when nobody says otherwise; nothing: not set.
  std::optional<std::string> default_value() const {
    if (!default_text.empty()) return default_text;
    return is_flag() ? std::optional<std::string>("false") : std::nullopt;
  }
  bool needs_value() const { return !is_flag() && implicit_text.empty(); }
  bool operator==(const OptionSpec&) const = default;
};

// Arguments without a name. Most commands take none.
struct PositionalSpec {
  std::string name{};  // what help shows, for instance "CHECKPOINT"
  std::string help{};
  std::size_t min = 0;
  std::size_t max = 0;

  bool operator==(const PositionalSpec&) const = default;
};

struct CommandSpec {
  std::string name{};
  std::string summary{};                // one line in the list of commands
  std::string text{};                   // what the command does and prints; '\n' starts a new paragraph
  std::vector<std::string> examples{};  // complete command lines
  std::vector<OptionSpec> options{};
  PositionalSpec positional{};

  bool operator==(const CommandSpec&) const = default;
};

struct ParsedArgs {
  bool help = false;
  std::map<std::string, std::string> values{};  // by option name; "true" for a flag without a value
  std::vector<std::string> positional{};

  bool operator==(const ParsedArgs&) const = default;
};

// Reads the arguments that follow the command's name: `--name=value` or `--name value` (the first form only where the
// value may be left out), flags as `--name`, `-h` and `--help`. After `--` all arguments are positional. Unknown and
// repeated options, missing values, and too many or too few positional arguments are errors of one line that names the
// culprit.
Result<ParsedArgs> parse_args(const CommandSpec& spec, const std::vector<std::string>& args);

// The options that somebody most likely meant who wrote `word` for a name: those that are called so elsewhere, else the
// one whose name is nearest, else none.
std::vector<std::string> options_meant(std::string_view word, const std::vector<OptionSpec>& options);

// "EVERSTEP_MEMORY_GIB" for "memory-gib".
std::string environment_name(std::string_view option);

}  // namespace everstep::launcher
