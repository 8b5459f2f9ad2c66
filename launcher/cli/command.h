#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"

namespace everstep::launcher {

// Where a command writes: data to `out`, events (a LogLine each) to `log`.
struct Streams {
  std::ostream& out;
  std::ostream& log;
  std::size_t log_columns = 0;   // width of the terminal behind `log`; 0: there is none
  bool out_is_terminal = false;  // what is written there may be written over
  std::size_t out_columns = 0;   // width of the terminal behind `out`; 0: there is none, or it has no end
  // What each event begins with: the wall-clock time. nullptr: nothing, for tests that compare texts.
  std::string (*log_time)() = nullptr;
};

// One word after `everstep`. `run` reads all its values before it starts to work (see values.h), and returns a Failure
// instead of printing an error. A command with `parts` does nothing of its own: the next word says which part is meant,
// and a part's spec has both words for its name, "checkpoint ls".
struct Command {
  CommandSpec spec;
  Outcome (*run)(const Config& config, Streams& streams) = nullptr;
  std::vector<Command> parts{};
  // What `run` refuses before it acts, for --print-config. nullptr: values are not looked at.
  Outcome (*check)(const Config& config) = nullptr;
  // What else --print-config tells, line by line, as comments. nullptr: nothing.
  std::vector<std::string> (*explain)(const Config& config) = nullptr;
};

// What the process was started with.
struct Invocation {
  std::vector<std::string> args;  // without the program's name
  Environment environment;
};

// Finds the command, joins its configuration and runs it, or answers `help`, --help, --version and --print-config. A
// failure is one line on the log stream: "everstep: …".
ExitCode run_command_line(const std::vector<Command>& commands, const Invocation& invocation, Streams& streams);

// The one form in which an event (the text of a LogLine) reaches a log: "time=… event=…\n", at once.
void print_event(Streams& streams, std::string_view event);

// The one form in which an error reaches a user: "everstep: <line>\n", without control characters.
void print_error(std::ostream& log, const Error& error);

}  // namespace everstep::launcher
