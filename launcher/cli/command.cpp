#include "launcher/cli/command.h"

#include <algorithm>

#include "base/log_line.h"
#include "base/version.h"
#include "launcher/cli/files.h"
#include "launcher/cli/help.h"
#include "launcher/cli/nearest.h"
#include "launcher/cli/printable.h"
#include "launcher/cli/values.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

Failure usage(Error error) { return {std::move(error), ExitCode::kUsage}; }

std::size_t help_columns(const Streams& streams) {
  constexpr std::size_t kFewest = 40;
  return streams.out_columns == 0 ? kHelpColumns : std::clamp(streams.out_columns, kFewest, kHelpColumns);
}

std::vector<CommandSpec> specs_of(const std::vector<Command>& commands) {
  std::vector<CommandSpec> specs;
  specs.reserve(commands.size());
  for (const Command& command : commands) specs.push_back(command.spec);
  return specs;
}

// `everstep` without a command: --help, --version, or a mistake.
Outcome run_program(const std::vector<Command>& commands, const std::vector<std::string>& args, Streams& streams) {
  const auto parsed = parse_args({.options = {{"version", "", "", ""}}}, args);
  if (!parsed) return usage(parsed.error());
  if (parsed->help) {
    streams.out << program_help(specs_of(commands), help_columns(streams));
    return {};
  }
  if (!parsed->values.contains("version")) {
    return usage(invalid_argument("a command is missing", "everstep --help lists the commands"));
  }
  streams.out << "everstep " << kVersion << "\n";
  return {};
}

// `everstep help train` is `everstep train --help`.
std::vector<std::string> asked_for_help(const std::vector<std::string>& args) {
  if (args.empty() || args.front() != "help") return args;
  std::vector<std::string> asked(args.begin() + 1, args.end());
  asked.emplace_back("--help");
  return asked;
}

// `everstep checkpoint` without a part: --help, or a mistake.
Outcome run_family(const Command& family, const std::vector<std::string>& args, Streams& streams) {
  const auto parsed = parse_args({.name = family.spec.name}, args);
  if (!parsed) return usage(parsed.error());
  const std::string name = "everstep " + family.spec.name;
  if (!parsed->help) {
    return usage(invalid_argument("a command is missing after " + name, name + " --help lists the commands"));
  }
  streams.out << family_help(family.spec, specs_of(family.parts), help_columns(streams));
  return {};
}

// `whole` is the name as it was given, all words of it; `program` what lists the commands.
Failure unknown_command(const std::vector<Command>& commands, const std::string& whole, const std::string& program) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.spec.name);
  const std::string meant = did_you_mean(nearest_name(whole, names));
  return usage(invalid_argument("unknown command '" + whole + "'",
                                meant.empty() ? program + " --help lists the commands" : meant));
}

const Command* find_command(const std::vector<Command>& commands, const std::string& name) {
  const auto found = std::ranges::find(commands, name, [](const Command& command) { return command.spec.name; });
  return found == commands.end() ? nullptr : &*found;
}

// The options of every command may stand in the file and the environment.
std::vector<OptionSpec> all_options(const std::vector<Command>& commands) {
  std::vector<OptionSpec> options;
  for (const Command& command : commands) {
    options.insert(options.end(), command.spec.options.begin(), command.spec.options.end());
    const std::vector<OptionSpec> of_parts = all_options(command.parts);
    options.insert(options.end(), of_parts.begin(), of_parts.end());
  }
  return options;
}

void tell_ignored(const Config& config, Streams& streams) {
  for (const std::string& setting : config.ignored) {
    print_event(streams, LogLine("setting_ignored")
                             .add("setting", setting)
                             .add("reason", "it names a file to write: only the command line may")
                             .text());
  }
}

// `words` of the arguments are the command's name.
Outcome run_command(const Command& command, std::ptrdiff_t words, const std::vector<Command>& commands,
                    const Invocation& invocation, Streams& streams) {
  const CommandSpec spec = with_common_options(command.spec);
  const auto args = parse_args(spec, {invocation.args.begin() + words, invocation.args.end()});
  if (!args) return usage(args.error());
  if (args->help) {
    streams.out << command_help(spec, help_columns(streams));
    return {};
  }

  ConfigSources sources{*args, invocation.environment, std::nullopt, all_options(commands)};
  if (const auto path = config_file_path(*args, invocation.environment)) {
    auto text = read_file(*path, kMaxConfigBytes);
    if (!text) return args->values.contains("config") ? usage(text.error()) : Failure(text.error());
    sources.file = ConfigFile{*path, std::move(text).value()};
  }
  const auto config = merge_config(spec, sources);
  if (!config) return config.error();

  Values values(*config);
  const bool print_only = values.flag("print-config");
  if (values.failure()) return values.failure();
  tell_ignored(*config, streams);
  if (!print_only) return command.run(*config, streams);
  // Also of a configuration that is refused: it says where the value is from.
  streams.out << print_config(*config);
  if (command.explain != nullptr) {
    for (const std::string& line : command.explain(*config)) streams.out << "# " << line << "\n";
  }
  return command.check == nullptr ? Outcome() : command.check(*config);
}

Outcome find_and_run(const std::vector<Command>& commands, const Invocation& given, Streams& streams) {
  const Invocation invocation{asked_for_help(given.args), given.environment};
  const std::vector<std::string>& args = invocation.args;
  const auto is_name = [&args](std::size_t index) { return index < args.size() && !args[index].starts_with('-'); };
  if (!is_name(0)) return run_program(commands, args, streams);
  const Command* command = find_command(commands, args[0]);
  if (command == nullptr) return unknown_command(commands, args[0], "everstep");
  if (command->parts.empty()) return run_command(*command, 1, commands, invocation, streams);
  if (!is_name(1)) return run_family(*command, {args.begin() + 1, args.end()}, streams);
  const std::string whole = args[0] + " " + args[1];
  const Command* part = find_command(command->parts, whole);
  if (part == nullptr) return unknown_command(command->parts, whole, "everstep " + args[0]);
  return run_command(*part, 2, commands, invocation, streams);
}

}  // namespace

ExitCode run_command_line(const std::vector<Command>& commands, const Invocation& invocation, Streams& streams) {
  const Outcome outcome = find_and_run(commands, invocation, streams);
  if (!outcome) return ExitCode::kDone;
  print_error(streams.log, outcome->error);
  return outcome->exit_code;
}

void print_event(Streams& streams, std::string_view event) {
  const std::string time = streams.log_time == nullptr ? "" : streams.log_time();
  streams.log << time + std::string(event) + "\n" << std::flush;
}

void print_error(std::ostream& log, const Error& error) { log << "everstep: " << printable(error.line()) << "\n"; }

}  // namespace everstep::launcher
