#include "launcher/command.h"

#include <algorithm>

#include "base/version.h"
#include "launcher/files.h"
#include "launcher/help.h"
#include "launcher/nearest.h"
#include "launcher/values.h"

namespace everstep::launcher {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;

Failure usage(Error error) { return {std::move(error), ExitCode::kUsage}; }

// `everstep` without a command: --help, --version, or a mistake.
Outcome run_program(const std::vector<Command>& commands, const std::vector<std::string>& args, Streams& streams) {
  const auto parsed = parse_args({.options = {{"version", "", "", ""}}}, args);
  if (!parsed) return usage(parsed.error());
  if (parsed->help) {
    std::vector<CommandSpec> specs;
    specs.reserve(commands.size());
    for (const Command& command : commands) specs.push_back(command.spec);
    streams.out << program_help(specs);
    return {};
  }
  if (!parsed->values.contains("version")) {
    return usage(invalid_argument("a command is missing", "everstep --help lists the commands"));
  }
  streams.out << "everstep " << kVersion << "\n";
  return {};
}

Failure unknown_command(const std::vector<Command>& commands, const std::string& name) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.spec.name);
  const std::string meant = nearest_name(name, names);
  return usage(invalid_argument("unknown command '" + name + "'",
                                meant.empty() ? "everstep --help lists the commands" : "did you mean " + meant + "?"));
}

// The options of every command may stand in the file and the environment.
std::set<std::string> all_options(const std::vector<Command>& commands) {
  std::set<std::string> names;
  for (const Command& command : commands) {
    for (const OptionSpec& option : command.spec.options) names.insert(option.name);
  }
  return names;
}

Outcome run_command(const Command& command, const std::vector<Command>& commands, const Invocation& invocation,
                    Streams& streams) {
  const CommandSpec spec = with_common_options(command.spec);
  const auto args = parse_args(spec, {invocation.args.begin() + 1, invocation.args.end()});
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

}  // namespace

ExitCode run_command_line(const std::vector<Command>& commands, const Invocation& invocation, Streams& streams) {
  const std::vector<std::string>& args = invocation.args;
  Outcome outcome;
  if (args.empty() || args.front().starts_with('-')) {
    outcome = run_program(commands, args, streams);
  } else {
    const auto name_of = [](const Command& command) { return command.spec.name; };
    const auto command = std::ranges::find(commands, args.front(), name_of);
    outcome = command == commands.end() ? unknown_command(commands, args.front())
                                        : run_command(*command, commands, invocation, streams);
  }
  if (!outcome) return ExitCode::kDone;
  print_error(streams.log, outcome->error);
  return outcome->exit_code;
}

void print_error(std::ostream& log, const Error& error) {
  std::string line = error.line();
  std::ranges::replace_if(
      line, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; }, '?');
  log << "everstep: " << line << "\n";
}

}  // namespace everstep::launcher
