#pragma once

#include <string>
#include <vector>

#include "launcher/options.h"

namespace everstep::launcher {

inline constexpr std::size_t kHelpColumns = 100;

// What `everstep <command> --help` prints: usage, text, options with defaults, environment names and examples.
std::string command_help(const CommandSpec& spec);

// What `everstep --help` prints: usage and one line for each command.
std::string program_help(const std::vector<CommandSpec>& commands);

// What `everstep <group> --help` prints: usage, the group's text, one line for each of its commands, and examples.
std::string group_help(const CommandSpec& group, const std::vector<CommandSpec>& commands);

}  // namespace everstep::launcher
