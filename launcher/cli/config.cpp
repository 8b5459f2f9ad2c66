#include "launcher/cli/config.h"

#include <algorithm>
#include <sstream>

#include "base/text.h"
#include "launcher/cli/nearest.h"

namespace everstep::launcher {
namespace {

constexpr std::string_view kConfigOption = "config";
constexpr std::string_view kPrintConfigOption = "print-config";
constexpr std::string_view kEnvironmentPrefix = "EVERSTEP_";

struct FileLine {
  std::string value;
  std::size_t line = 0;
};

// A '#' inside a word belongs to the word.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return line.substr(0, i);
  }
  return line;
}

bool is_among(const std::vector<OptionSpec>& options, std::string_view name) {
  return std::ranges::find(options, name, &OptionSpec::name) != options.end();
}

Result<std::map<std::string, FileLine>> parse_file(const ConfigFile& file, const std::vector<OptionSpec>& known) {
  std::map<std::string, FileLine> lines;
  std::istringstream input(file.text);
  std::size_t number = 0;
  const auto refuse = [&](const std::string& why, std::string hint = {}) {
    return invalid_argument(file.path + " line " + std::to_string(number) + ": " + why, std::move(hint));
  };
  for (std::string raw; std::getline(input, raw);) {
    ++number;
    const std::string_view line = trimmed(without_comment(raw));
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    const std::string name(trimmed(line.substr(0, equals)));
    if (equals == std::string_view::npos || name.empty()) {
      return refuse("expected name = value, got '" + std::string(line) + "'");
    }
    if (name == kConfigOption) return refuse("a file cannot name another file");
    if (!is_among(known, name)) return refuse("unknown name " + name, did_you_mean(options_meant(name, known)));
    const auto [entry, is_new] =
        lines.try_emplace(name, FileLine{std::string(trimmed(line.substr(equals + 1))), number});
    if (!is_new) {
      return refuse(name + " is already set on line " + std::to_string(entry->second.line));
    }
  }
  return lines;
}

// "memory-gib" for "EVERSTEP_MEMORY_GIB".
std::string option_of(std::string_view variable) {
  std::string name(variable.substr(kEnvironmentPrefix.size()));
  for (char& c : name) c = c == '_' ? '-' : static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

Status check_environment(const Environment& environment, const std::vector<OptionSpec>& known) {
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with(kEnvironmentPrefix)) continue;
    const std::string name = option_of(variable);
    if (environment_name(name) == variable && is_among(known, name)) continue;
    std::vector<std::string> meant = options_meant(name, known);
    for (std::string& one : meant) one = environment_name(one);
    return invalid_argument("unknown environment variable " + variable, did_you_mean(meant));
  }
  return {};
}

std::string source_text(const Config& config, const Setting& setting) {
  switch (setting.source) {
    case Source::kFlag:
      return "--" + setting.name;
    case Source::kEnvironment:
      return environment_name(setting.name);
    case Source::kFile:
      return config.file_path + " line " + std::to_string(setting.line);
    case Source::kDefault:
      break;
  }
  return "default";
}

}  // namespace

const Setting& Config::setting(std::string_view name) const {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  EVERSTEP_CHECK(found != settings.end(), "everstep " + command + " has no option --" + std::string(name));
  return *found;
}

std::string Config::shown(std::string_view name) const {
  const Setting& found = setting(name);
  if (!found.text) return "--" + found.name;
  if (found.source == Source::kFile) return source_text(*this, found) + ": " + found.name + " = " + *found.text;
  if (found.source == Source::kDefault) return "--" + found.name + "=" + *found.text + " (default)";
  return source_text(*this, found) + "=" + *found.text;
}

Failure Config::reject(std::string_view name, std::string_view why, std::string hint) const {
  return blame(name, invalid_argument(shown(name) + ": " + std::string(why), std::move(hint)));
}

Failure Config::blame(std::string_view name, Error error) const {
  const Source source = setting(name).source;
  const bool to_fix = error.code == ErrorCode::kInvalidArgument || error.code == ErrorCode::kNotFound;
  if (to_fix && source == Source::kFlag) return {std::move(error), ExitCode::kUsage};
  return Failure(std::move(error));
}

Result<Config> merge_config(const CommandSpec& spec, const ConfigSources& sources) {
  std::vector<OptionSpec> known = sources.other_options;
  known.insert(known.end(), spec.options.begin(), spec.options.end());
  EVERSTEP_TRY(check_environment(sources.environment, known));
  std::map<std::string, FileLine> lines;
  if (sources.file) {
    auto parsed = parse_file(*sources.file, known);
    if (!parsed) return parsed.error();
    lines = std::move(parsed).value();
  }

  Config config{spec.name, sources.file ? sources.file->path : "", {}, sources.args.positional, {}};
  for (const OptionSpec& option : spec.options) {
    Setting setting{option.name, std::nullopt};
    const auto flag = sources.args.values.find(option.name);
    const auto variable = sources.environment.find(environment_name(option.name));
    const auto line = lines.find(option.name);
    if (flag != sources.args.values.end()) {
      setting = {option.name, flag->second, Source::kFlag};
    } else if (variable != sources.environment.end()) {
      setting = {option.name, variable->second, Source::kEnvironment};
    } else if (line != lines.end()) {
      setting = {option.name, line->second.value, Source::kFile, line->second.line};
    }
    const bool counts = setting.text && (!option.command_line_only || setting.source == Source::kFlag);
    config.settings.push_back(std::move(setting));
    if (counts) continue;
    if (config.settings.back().text) config.ignored.push_back(config.shown(option.name));
    config.settings.back() = {option.name, option.default_value()};
  }
  return config;
}

CommandSpec with_common_options(CommandSpec spec) {
  spec.options.push_back({std::string(kConfigOption), "FILE", "", "read options from this file"});
  spec.options.push_back(
      {std::string(kPrintConfigOption), "", "", "print each option's value and its source, then stop"});
  return spec;
}

std::optional<std::string> config_file_path(const ParsedArgs& args, const Environment& environment) {
  if (const auto flag = args.values.find(std::string(kConfigOption)); flag != args.values.end()) return flag->second;
  const auto variable = environment.find(environment_name(kConfigOption));
  if (variable != environment.end()) return variable->second;
  return std::nullopt;
}

std::string print_config(const Config& config) {
  std::size_t name_width = 0;
  std::size_t value_width = 0;
  for (const Setting& setting : config.settings) {
    name_width = std::max(name_width, setting.name.size());
    value_width = std::max(value_width, setting.text.value_or("").size());
  }
  std::string text;
  for (const Setting& setting : config.settings) {
    if (setting.name == kConfigOption || setting.name == kPrintConfigOption) continue;
    if (!setting.text) {
      text += "# " + setting.name + " is not set\n";
      continue;
    }
    text += setting.name + std::string(name_width - setting.name.size(), ' ') + " = " + *setting.text +
            std::string(value_width - setting.text->size(), ' ') + "  # " + source_text(config, setting) + "\n";
  }
  return text;
}

}  // namespace everstep::launcher
