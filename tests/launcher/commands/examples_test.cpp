#include <sstream>

#include <gmock/gmock.h>

#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {
namespace {

std::vector<Command> commands_with_parts() {
  std::vector<Command> all;
  for (const Command& command : all_commands()) {
    if (command.run != nullptr) all.push_back(command);
    all.insert(all.end(), command.parts.begin(), command.parts.end());
  }
  return all;
}

// The words behind "everstep <command>", up to where the shell takes over.
std::vector<std::string> arguments_of(const std::string& example, const std::string& command) {
  const std::string begin = "everstep " + command;
  EXPECT_EQ(example.substr(0, begin.size()), begin);
  std::istringstream words(example.substr(std::min(begin.size(), example.size())));
  std::vector<std::string> arguments;
  for (std::string word; words >> word && word != ">";) arguments.push_back(word);
  return arguments;
}

// An example that the program refuses is worse than none.
TEST(Examples, OfEveryCommandAreCommandLinesItTakes) {
  for (const Command& command : commands_with_parts()) {
    const CommandSpec spec = with_common_options(command.spec);
    EXPECT_FALSE(spec.examples.empty()) << spec.name;
    for (const std::string& example : spec.examples) {
      const auto parsed = parse_args(spec, arguments_of(example, spec.name));
      EXPECT_TRUE(parsed.ok()) << example << ": " << (parsed.ok() ? "" : parsed.error().line());
    }
  }
}

TEST(Examples, StandInTheHelpOfEveryCommand) {
  for (const Command& command : commands_with_parts()) {
    std::istringstream words(command.spec.name);
    std::vector<std::string> args{"help"};
    for (std::string word; words >> word;) args.push_back(word);
    const CommandRun help = run_command(args);
    EXPECT_EQ(help.exit_code, 0) << command.spec.name;
    EXPECT_THAT(help.out, testing::HasSubstr("\n  " + command.spec.examples.front() + "\n"));
  }
}

}  // namespace
}  // namespace everstep::launcher
