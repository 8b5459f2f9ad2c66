#include "launcher/cli/help.h"

#include <algorithm>
#include <sstream>

namespace everstep::launcher {
namespace {

// A line of a list: what to type, and what it means.
struct HelpEntry {
  std::string left;
  std::string right;
};

// Appends the words to `text`, whose last line is `column` wide, breaking lines before `columns`; further lines start
// at `indent`. A word that is longer than a line stays whole.
void append_wrapped(std::string& text, std::string_view words, std::size_t column, std::size_t indent,
                    std::size_t columns) {
  std::istringstream input{std::string(words)};
  bool first = true;
  for (std::string word; input >> word; first = false) {
    if (!first && column + 1 + word.size() > columns) {
      text.append("\n").append(indent, ' ');
      column = indent;
    } else if (!first) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  text += '\n';
}

std::string paragraphs(std::string_view source, std::size_t columns) {
  std::istringstream input{std::string(source)};
  std::string text;
  for (std::string paragraph; std::getline(input, paragraph);) append_wrapped(text, paragraph, 0, 0, columns);
  return text;
}

std::string list(const std::vector<HelpEntry>& entries, std::size_t columns) {
  constexpr std::size_t kWidestLeft = 28;
  std::size_t width = 0;
  for (const HelpEntry& entry : entries) {
    if (entry.left.size() <= kWidestLeft) width = std::max(width, entry.left.size());
  }
  const std::size_t indent = 2 + width + 2;
  std::string text;
  for (const HelpEntry& entry : entries) {
    text.append("  ").append(entry.left);
    if (entry.left.size() > width) {
      text.append("\n").append(indent, ' ');
    } else {
      text.append(indent - 2 - entry.left.size(), ' ');
    }
    append_wrapped(text, entry.right, indent, indent, columns);
  }
  return text;
}

std::string usage(const CommandSpec& spec) {
  std::string line = "usage: everstep " + spec.name + " [--name=value ...]";
  if (spec.positional.max == 0) return line + "\n";
  const bool is_list = spec.positional.max > 1 && spec.positional.max != spec.positional.min;
  const std::string shown = spec.positional.name + (is_list ? " ..." : "");
  return line + (spec.positional.min == 0 ? " [" + shown + "]" : " " + shown) + "\n";
}

HelpEntry entry_of(const OptionSpec& option) {
  std::string value = option.is_flag() ? "" : "=" + option.value_name;
  if (!option.implicit_text.empty()) value = "[" + value + "]";
  HelpEntry entry{"--" + option.name + value, option.help};
  if (option.required) {
    entry.right += " (required)";
  } else if (!option.default_text.empty()) {
    entry.right += " (default: " + option.default_text + ")";
  }
  return entry;
}

std::string examples(const CommandSpec& spec) {
  std::string text = spec.examples.size() > 1 ? "examples:\n" : "example:\n";
  for (const std::string& example : spec.examples) text += "  " + example + "\n";
  return text;
}

std::vector<HelpEntry> summaries(const std::vector<CommandSpec>& commands) {
  std::vector<HelpEntry> entries;
  entries.reserve(commands.size());
  for (const CommandSpec& command : commands) entries.push_back({command.name, command.summary});
  return entries;
}

// What supervisors and scripts go by.
std::vector<HelpEntry> exit_codes() {
  return {{"0", "done"},
          {"1", "two checkpoints differ (checkpoint diff)"},
          {"64", "wrong usage: an option, an argument, or a job or run that is not there"},
          {"65", "damaged checkpoints, or what audit or replay found"},
          {"69", "etcd, peers or output that cannot be reached, or a wait that was too short"},
          {"70", "a bug, a violation in sim, or a broken promise in chaos"},
          {"75", "stopped or left on request: safe to start again"},
          {"78", "settings or files that cannot work"}};
}

}  // namespace

std::string command_help(const CommandSpec& spec, std::size_t columns) {
  std::string text = usage(spec) + "\n" + paragraphs(spec.text, columns) + "\n";
  std::vector<HelpEntry> entries;
  std::string variables;
  if (spec.positional.max > 0) entries.push_back({spec.positional.name, spec.positional.help});
  for (const OptionSpec& option : spec.options) {
    entries.push_back(entry_of(option));
    if (!option.command_line_only) variables += environment_name(option.name) + " ";
  }
  entries.push_back({"-h, --help", "print this text"});
  text += "options:\n" + list(entries, columns) + "\n";

  text += "environment:\n  ";
  append_wrapped(text, variables, 2, 2, columns);
  append_wrapped(
      text += '\n',
      "An option wins over its variable in the environment, and that over a line `name = value` in the file of "
      "--config, where # starts a comment. A flag there is true or false.",
      0, 0, columns);

  return text + "\n" + examples(spec);
}

std::string family_help(const CommandSpec& family, const std::vector<CommandSpec>& commands, std::size_t columns) {
  const std::string name = "everstep " + family.name;
  return "usage: " + name + " <command> [--name=value ...]\n\n" + paragraphs(family.text, columns) + "\ncommands:\n" +
         list(summaries(commands), columns) + "\noptions:\n" +
         list({{"-h, --help", "print this text; after a command, what the command takes"}}, columns) + "\n" +
         examples(family);
}

std::string program_help(const std::vector<CommandSpec>& commands, std::size_t columns) {
  return "usage: everstep <command> [--name=value ...]\n\n"
         "Trains models with AMDP pipelines on workers that come and go.\n\n"
         "commands:\n" +
         list(summaries(commands), columns) + "\noptions:\n" +
         list({{"-h, --help", "print this text; after a command, what the command takes"},
               {"--version", "print the version"}},
              columns) +
         "\neverstep help <command> is everstep <command> --help. Exit codes:\n" + list(exit_codes(), columns);
}

}  // namespace everstep::launcher
