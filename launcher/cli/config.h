#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"

namespace everstep::launcher {

// Where a value stood; a later one wins over an earlier one.
enum class Source { kDefault, kFile, kEnvironment, kFlag };

struct Setting {
  std::string name;
  std::optional<std::string> text;  // nothing: not given, and there is no default
  Source source = Source::kDefault;
  std::size_t line = 0;  // in the file; 0 for the other sources

  bool operator==(const Setting&) const = default;
};

// The values of one command and where each came from. Settings are in the order of the command's options.
struct Config {
  std::string command;
  std::string file_path;  // of --config; empty if there is none
  std::vector<Setting> settings;
  std::vector<std::string> positional;
  // What was given where it does not count, as its owner wrote it: a file to write, elsewhere than on the command line.
  std::vector<std::string> ignored{};

  // The option must be one of the command's: another name is a bug.
  const Setting& setting(std::string_view name) const;
  bool is_set(std::string_view name) const { return setting(name).text.has_value(); }

  // The value as its owner wrote it: "--workers=0", "EVERSTEP_WORKERS=0", "run.conf line 3: workers = 0".
  std::string shown(std::string_view name) const;

  // Refuses a value: "--model=gpt5: unknown model". Usage if it stood on the command line, else configuration.
  Failure reject(std::string_view name, std::string_view why, std::string hint = {}) const;

  // The same exit code for an error that came from using a value and has a message of its own, such as read_file's.
  Failure blame(std::string_view name, Error error) const;

  bool operator==(const Config&) const = default;
};

struct ConfigFile {
  std::string path;
  std::string text;

  bool operator==(const ConfigFile&) const = default;
};

using Environment = std::map<std::string, std::string>;

struct ConfigSources {
  ParsedArgs args;
  Environment environment{};  // variables that do not start with EVERSTEP_ are not looked at
  std::optional<ConfigFile> file{};
  std::vector<OptionSpec> other_options{};  // of other commands: one file and one environment serve them all

  bool operator==(const ConfigSources&) const = default;
};

// Joins the sources: flag over environment over file over default. Unknown and repeated names in the file, lines that
// are not `name = value`, and unknown EVERSTEP_ variables are errors. Values are not looked at: see values.h. Pure.
Result<Config> merge_config(const CommandSpec& spec, const ConfigSources& sources);

// The options that each command has: --config and --print-config.
CommandSpec with_common_options(CommandSpec spec);

// Where --config or EVERSTEP_CONFIG says the file is.
std::optional<std::string> config_file_path(const ParsedArgs& args, const Environment& environment);

// All settings with their sources, as a file that --config reads back: `workers = 7  # --workers`. (A value with " #"
// in it, or with blanks at its ends, is printed but does not read back.)
std::string print_config(const Config& config);

}  // namespace everstep::launcher
