#include "launcher/cli/help.h"

#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "launcher/cli/config.h"
#include "tests/launcher/cli/toy_spec.h"

namespace everstep::launcher {
namespace {

TEST(Help, OfACommandIsComplete) {
  EXPECT_EQ(command_help(with_common_options(toy_spec())),
            R"(usage: everstep brew [--name=value ...]

Makes tea for all workers, as fast as the kettle allows, and prints a table with one line for each
cup and its temperature.
Stops when the leaves are gone.

options:
  --cups=N          how many cups to make (required)
  --memory-gib=GIB  how much the pot holds; the text of this option is long enough to need a second
                    line (default: 40)
  --kind=NAME       green or black (default: green)
  --svg=FILE        draw the pot
  --json            print JSON instead of a table
  --config=FILE     read options from this file
  --print-config    print each option's value and its source, then stop
  -h, --help        print this text

environment:
  EVERSTEP_CUPS EVERSTEP_MEMORY_GIB EVERSTEP_KIND EVERSTEP_SVG EVERSTEP_JSON EVERSTEP_CONFIG
  EVERSTEP_PRINT_CONFIG

An option wins over its variable in the environment, and that over a line `name = value` in the file
of --config, where # starts a comment. A flag there is true or false.

examples:
  everstep brew --cups=2 --kind=green
  everstep brew --cups=2 --json
)");
}

TEST(Help, NamesNoVariableThatIsIgnored) {
  CommandSpec spec = toy_spec();
  spec.options = {{.name = "svg", .value_name = "FILE", .help = "draw the pot", .command_line_only = true}};
  EXPECT_EQ(command_help(spec).find("EVERSTEP_SVG"), std::string::npos);
}

TEST(Help, ShowsAValueThatCanBeLeftOutInBrackets) {
  CommandSpec spec = toy_spec();
  spec.options = {{.name = "again", .value_name = "CUP", .help = "refill", .implicit_text = "last"}};
  EXPECT_NE(command_help(spec).find("  --again[=CUP]  refill\n"), std::string::npos);
}

TEST(Help, OfAFamilyListsItsCommands) {
  const CommandSpec family{.name = "pot", .text = "Looks after the pot.", .examples = {"everstep pot rinse --hot"}};
  EXPECT_EQ(
      family_help(family, {{.name = "pot rinse", .summary = "rinse it"}, {.name = "pot dry", .summary = "dry it"}}),
      R"(usage: everstep pot <command> [--name=value ...]

Looks after the pot.

commands:
  pot rinse  rinse it
  pot dry    dry it

options:
  -h, --help  print this text; after a command, what the command takes

example:
  everstep pot rinse --hot
)");
}

TEST(Help, ShowsPositionalArguments) {
  CommandSpec spec = toy_spec();
  spec.positional = {"LEAF", "what to put into the pot", 1, 3};
  const std::string help = command_help(spec);
  EXPECT_EQ(help.substr(0, help.find('\n')), "usage: everstep brew [--name=value ...] LEAF ...");
  EXPECT_NE(help.find("\n  LEAF              what to put into the pot\n"), std::string::npos) << help;
  spec.positional.min = 0;
  EXPECT_EQ(command_help(spec).substr(0, 50), "usage: everstep brew [--name=value ...] [LEAF ...]");
  spec.positional = {"LEAF WATER", "", 2, 2};
  EXPECT_EQ(command_help(spec).substr(0, 51), "usage: everstep brew [--name=value ...] LEAF WATER\n");
}

TEST(Help, OfTheProgramListsTheCommands) {
  CommandSpec wait{.name = "wait-for-tea", .summary = "wait"};
  EXPECT_EQ(program_help({toy_spec(), wait}), R"(usage: everstep <command> [--name=value ...]

Trains models with AMDP pipelines on workers that come and go.

commands:
  brew          make tea
  wait-for-tea  wait

options:
  -h, --help  print this text; after a command, what the command takes
  --version   print the version

everstep help <command> is everstep <command> --help. Exit codes:
  0   done
  1   two checkpoints differ (checkpoint diff)
  64  wrong usage: an option, an argument, or a job or run that is not there
  65  damaged checkpoints, or what audit or replay found
  69  etcd, peers or output that cannot be reached, or a wait that was too short
  70  a bug, a violation in sim, or a broken promise in chaos
  75  stopped or left on request: safe to start again
  78  settings or files that cannot work
)");
}

TEST(Help, BreaksNoLineLaterThanItsColumns) {
  CommandSpec spec = toy_spec();
  spec.options.push_back({"an-option-with-quite-a-long-name", "VALUE", std::string(60, 'x'), std::string(70, 'y')});
  std::istringstream lines(command_help(spec));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), kHelpColumns) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

}  // namespace
}  // namespace everstep::launcher
