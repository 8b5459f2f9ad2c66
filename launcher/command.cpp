#include "launcher/command.h"

#include <algorithm>

#include "base/version.h"
#include "launcher/files.h"
#include "launcher/help.h"
#include "launcher/nearest.h"
#include "launcher/printable.h"
#include "launcher/values.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

Failure usage(Error error) { return {std::move(error), ExitCode::kUsage}; }

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
    streams.out << program_help(specs_of(commands));
    return {};
  }
  if (!parsed->values.contains("version")) {
    return usage(invalid_argument("a command is missing", "everstep --help lists the commands"));
  }
  streams.out << "everstep " << kVersion << "\n";
  return {};
}

// `everstep checkpoint` without a part: --help, or a mistake.
Outcome run_group(const Command& group, const std::vector<std::string>& args, Streams& streams) {
  const auto parsed = parse_args({.name = group.spec.name}, args);
  if (!parsed) return usage(parsed.error());
  const std::string name = "everstep " + group.spec.name;
  if (!parsed->help) {
    return usage(invalid_argument("a command is missing after " + name, name + " --help lists the commands"));
  }
  streams.out << group_help(group.spec, specs_of(group.parts));
  return {};
}

// `whole` is the name as it was given, all words of it; `program` what lists the commands.
Failure unknown_command(const std::vector<Command>& commands, const std::string& whole, const std::string& program) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.spec.name);
  const std::string meant = nearest_name(whole, names);
  return usage(invalid_argument("unknown command '" + whole + "'", meant.empty()
                                                                       ? program + " --help lists the commands"
                                                                       : "did you mean " + meant + "?"));
}

const Command* find_command(const std::vector<Command>& commands, const std::string& name) {
  const auto found = std::ranges::find(commands, name, [](const Command& command) { return command.spec.name; });
  return found == commands.end() ? nullptr : &*found;
}

// The options of every command may stand in the file and the environment.
std::set<std::string> all_options(const std::vector<Command>& commands) {
  std::set<std::string> names;
  for (const Command& command : commands) {
    for (const OptionSpec& option : command.spec.options) names.insert(option.name);
    names.merge(all_options(command.parts));
  }
  return names;
}

// `words` of the arguments are the command's name.
Outcome run_command(const Command& command, std::ptrdiff_t words, const std::vector<Command>& commands,
                    const Invocation& invocation, Streams& streams) {
  const CommandSpec spec = with_common_options(command.spec);
  const auto args = parse_args(spec, {invocation.args.begin() + words, invocation.args.end()});
  if (!args) return usage(args.error());
  if (args->help) {
    streams.out << command_help(spec);
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
  if (!print_only) return command.run(*config, streams);
  streams.out << print_config(*config);
  return {};
}

Outcome find_and_run(const std::vector<Command>& commands, const Invocation& invocation, Streams& streams) {
  const std::vector<std::string>& args = invocation.args;
  const auto is_name = [&args](std::size_t index) { return index < args.size() && !args[index].starts_with('-'); };
  if (!is_name(0)) return run_program(commands, args, streams);
  const Command* command = find_command(commands, args[0]);
  if (command == nullptr) return unknown_command(commands, args[0], "everstep");
  if (command->parts.empty()) return run_command(*command, 1, commands, invocation, streams);
  if (!is_name(1)) return run_group(*command, {args.begin() + 1, args.end()}, streams);
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

void print_error(std::ostream& log, const Error& error) { log << "everstep: " << printable(error.line()) << "\n"; }

}  // namespace everstep::launcher
