#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::launcher {

// Whose business a setting of a job is.
enum class OptionSide {
  kJob,      // all workers': it stands in the job's spec, and who wants to join with another value is refused
  kHost,     // one host's, with its workers and their supervisor: each host may have another
  kCommand,  // one call's: which job it is about, where it starts, what it writes and prints
};

// What becomes of a setting when a job goes on from a checkpoint, which tells what it was.
enum class OnResume {
  kMustMatch,  // decides what is computed: as the checkpoint has it, and another value is refused
  kMayChange,  // as the checkpoint has it, unless another value is given
  kAnew,       // what was right for the old run says nothing about this one: given again, found out, or the default
  kImplied,    // follows from which checkpoint is meant: `everstep resume` has no such option
};

// One setting, under the same name everywhere: `--memory-gib=40`, EVERSTEP_MEMORY_GIB=40, `memory-gib = 40` in a file.
struct OptionSpec {
  std::string name{};          // lower case, words joined by '-', at least two letters
  std::string value_name{};    // what help shows after '='; empty for a flag, which is true or false
  std::string default_text{};  // empty: not set unless given; a flag is then false
  std::string help{};          // one sentence without a full stop
  bool required = false;       // the command cannot run without it
  // What `everstep train` makes of the option as a setting of a job; other commands do not ask. Whoever forgets to say
  // so gets the strictest: a setting that neither another worker nor a resume may have otherwise.
  bool is_path = false;  // of a file or directory: kept as an absolute one, and each host may have it elsewhere
  OptionSide side = OptionSide::kJob;
  OnResume on_resume = OnResume::kMustMatch;
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
  bool is_of_job() const { return side == OptionSide::kJob; }
  bool may_change_on_resume() const { return on_resume != OnResume::kMustMatch; }
  // Whether a resumed run has what the checkpoint tells if nobody says otherwise.
  bool is_kept_on_resume() const { return on_resume == OnResume::kMustMatch || on_resume == OnResume::kMayChange; }
  // Whether a resumed run on the same host needs it again, because no checkpoint tells it.
  bool is_repeated_on_resume() const { return side == OptionSide::kHost && on_resume == OnResume::kAnew; }
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

// The option of that name; null: there is none.
const OptionSpec* find_option(const std::vector<OptionSpec>& options, std::string_view name);

// The value in a form that means the same to a process in another directory: paths are absolute.
std::string lasting_text(const OptionSpec& option, const std::string& text);

// "EVERSTEP_MEMORY_GIB" for "memory-gib".
std::string environment_name(std::string_view option);

}  // namespace everstep::launcher
