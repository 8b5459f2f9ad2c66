#pragma once

#include <string>
#include <vector>

#include "launcher/cli/options.h"

namespace everstep::launcher {

inline constexpr std::size_t kHelpColumns = 100;

// All lines are broken before `columns`, but for words and examples that are longer.

// What `everstep <command> --help` prints: usage, text, options with defaults, environment names and examples.
std::string command_help(const CommandSpec& spec, std::size_t columns = kHelpColumns);

// What `everstep --help` prints: usage, one line for each command, and the exit codes.
std::string program_help(const std::vector<CommandSpec>& commands, std::size_t columns = kHelpColumns);

// What `everstep <family> --help` prints: usage, the family's text, one line for each of its commands, and examples.
std::string family_help(const CommandSpec& family, const std::vector<CommandSpec>& commands,
                        std::size_t columns = kHelpColumns);

}  // namespace everstep::launcher
