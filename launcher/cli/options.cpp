#include "launcher/cli/options.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

// The regular expressions of libstdc++ recurse for each character: a long argument would overflow the stack.
#define CXXOPTS_NO_REGEX  // NOLINT(readability-identifier-naming): the library's name
#include <cxxopts.hpp>

#include "launcher/cli/nearest.h"

namespace everstep::launcher {
namespace {

// "--window", and what it is if there is a choice.
std::string shown_option(const CommandSpec& spec, const std::string& name, bool is_one_of_many) {
  const OptionSpec* option = is_one_of_many ? find_option(spec.options, name) : nullptr;
  return "--" + name + (option == nullptr ? "" : " (" + option->help + ")");
}

Error unknown_option(const CommandSpec& spec, std::string_view dashed_name) {
  std::vector<OptionSpec> options = spec.options;
  options.push_back({.name = "help"});
  const std::string_view word = dashed_name.substr(std::min(dashed_name.find_first_not_of('-'), dashed_name.size()));
  std::vector<std::string> meant = options_meant(word, options);
  const bool has_choice = meant.size() > 1;
  for (std::string& name : meant) name = shown_option(spec, name, has_choice);
  const std::string program = spec.name.empty() ? "everstep" : "everstep " + spec.name;
  return invalid_argument("unknown option " + std::string(dashed_name),
                          meant.empty() ? program + " --help lists the options" : did_you_mean(meant));
}

// Finds what the library accepts or reports without a usable name: unknown options, a group of short options, and an
// option that would swallow the next one as its value.
Status check_forms(const CommandSpec& spec, const std::vector<std::string>& args) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string_view arg = args[i];
    if (!arg.starts_with('-') || arg == "-" || arg == "-h" || arg == "--help") continue;
    const std::string_view dashed_name = arg.substr(0, arg.find('='));
    const OptionSpec* option =
        arg.starts_with("--") ? find_option(spec.options, arg.substr(2, arg.find('=') - 2)) : nullptr;
    if (option == nullptr) return unknown_option(spec, dashed_name);
    if (!option->needs_value() || dashed_name != arg) continue;
    if (++i == args.size() || (args[i].starts_with('-') && args[i] != "-")) {
      return invalid_argument("--" + option->name + " needs a value",
                              "write --" + option->name + "=" + option->value_name);
    }
  }
  return {};
}

Status check_positional(const CommandSpec& spec, const std::vector<std::string>& positional) {
  if (positional.size() > spec.positional.max) {
    return invalid_argument("unexpected argument '" + positional[spec.positional.max] + "'",
                            spec.options.empty() ? "" : "options are written --name=value");
  }
  if (positional.size() < spec.positional.min) {
    return invalid_argument(spec.positional.name + " is missing", spec.positional.help);
  }
  return {};
}

}  // namespace

Result<ParsedArgs> parse_args(const CommandSpec& spec, const std::vector<std::string>& args) {
  const auto separator = std::ranges::find(args, "--");
  const std::vector<std::string> named(args.begin(), separator);
  EVERSTEP_TRY(check_forms(spec, named));

  cxxopts::Options options("everstep");
  options.add_options()("h,help", "");
  for (const OptionSpec& option : spec.options) {
    const auto value = cxxopts::value<std::string>();
    const std::string implicit = option.is_flag() ? "true" : option.implicit_text;
    options.add_options()(option.name, "", option.needs_value() ? value : value->implicit_value(implicit));
  }
  std::vector<const char*> argv = {"everstep"};
  for (const std::string& arg : named) argv.push_back(arg.c_str());

  ParsedArgs parsed;
  try {
    const cxxopts::ParseResult result = options.parse(static_cast<int>(argv.size()), argv.data());
    parsed.help = result.count("help") > 0;
    for (const OptionSpec& option : spec.options) {
      const std::size_t count = result.count(option.name);
      if (count > 1) return invalid_argument("--" + option.name + " is given " + std::to_string(count) + " times");
      if (count == 1) parsed.values[option.name] = result[option.name].as<std::string>();
    }
    parsed.positional = result.unmatched();
  } catch (const cxxopts::exceptions::exception& exception) {
    return invalid_argument(exception.what());
  }
  if (separator != args.end()) parsed.positional.insert(parsed.positional.end(), separator + 1, args.end());
  if (!parsed.help) EVERSTEP_TRY(check_positional(spec, parsed.positional));
  return parsed;
}

std::vector<std::string> options_meant(std::string_view word, const std::vector<OptionSpec>& options) {
  std::vector<std::string> meant;
  std::vector<std::string> names;
  for (const OptionSpec& option : options) {
    names.push_back(option.name);
    const bool is_called_so = std::ranges::find(option.called_elsewhere, word) != option.called_elsewhere.end();
    if (is_called_so && std::ranges::find(meant, option.name) == meant.end()) meant.push_back(option.name);
  }
  if (!meant.empty()) return meant;
  std::string nearest = nearest_name(word, names);
  if (!nearest.empty()) meant.push_back(std::move(nearest));
  return meant;
}

const OptionSpec* find_option(const std::vector<OptionSpec>& options, std::string_view name) {
  const auto found = std::ranges::find(options, name, &OptionSpec::name);
  return found == options.end() ? nullptr : &*found;
}

std::string lasting_text(const OptionSpec& option, const std::string& text) {
  return option.is_path ? std::filesystem::absolute(text).lexically_normal().string() : text;
}

std::string environment_name(std::string_view option) {
  std::string name = "EVERSTEP_";
  for (const char c : option) name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return name;
}

}  // namespace everstep::launcher
