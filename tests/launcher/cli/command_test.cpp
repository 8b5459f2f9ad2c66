#include "launcher/cli/command.h"

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/version.h"
#include "launcher/cli/files.h"
#include "launcher/cli/values.h"
#include "tests/launcher/cli/toy_spec.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

Outcome brew(const Config& config, Streams& streams) {
  Values values(config);
  const auto cups = values.integer("cups", {.min = 1, .max = 9});
  if (values.failure()) return values.failure();
  if (cups == 7) return Error{ErrorCode::kUnavailable, "the kettle\ndoes not answer", ""};
  if (cups == 8) return invalid_argument("eight cups need a larger pot");
  streams.out << "made " << cups << "\n";
  print_event(streams, "event=tea_made");
  return {};
}

Outcome check_brew(const Config& config) {
  Values values(config);
  values.integer("cups", {.min = 1, .max = 9});
  return values.failure();
}

Outcome drink(const Config&, Streams&) { return {}; }

Outcome rinse(const Config& config, Streams& streams) {
  streams.out << "rinsed";
  for (const std::string& word : config.positional) streams.out << " " << word;
  streams.out << "\n";
  return {};
}

std::vector<Command> toy_commands() {
  Command pot;
  pot.spec = {.name = "pot", .summary = "look after the pot", .examples = {"everstep pot rinse"}};
  pot.parts = {{{.name = "pot rinse",
                 .summary = "rinse it",
                 .options = {{"heat", "N", "1", ""}},
                 .positional = {"WITH", "", 0, 1}},
                rinse},
               {{.name = "pot dry"}, drink}};
  return {{toy_spec(), brew, {}, check_brew},
          {{.name = "drink", .summary = "drink tea", .options = {{"speed", "N", "1", ""}}}, drink},
          pot};
}

struct Ended {
  int exit_code = 0;
  std::string out;
  std::string log;

  bool operator==(const Ended&) const = default;
};

void PrintTo(const Ended& ended, std::ostream* out) {
  *out << ended.exit_code << "\nout: " << ended.out << "\nlog: " << ended.log;
}

Ended run(const std::vector<std::string>& args, const Environment& environment = {}) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  const ExitCode code = run_command_line(toy_commands(), {args, environment}, streams);
  return {static_cast<int>(code), out.str(), log.str()};
}

Ended failed(int exit_code, const std::string& line) { return {exit_code, "", "everstep: " + line + "\n"}; }

class CommandFileTest : public testing::Test {
 protected:
  std::string file(const std::string& text) const {
    const std::string path = directory_.file("tea.conf");
    EXPECT_TRUE(write_file(path, text).ok());
    return path;
  }

  TemporaryDirectory directory_;
};

TEST(CommandLine, RunsTheCommand) {
  EXPECT_EQ(run({"brew", "--cups=2"}), (Ended{0, "made 2\n", "event=tea_made\n"}));
  EXPECT_EQ(run({"brew"}, {{"EVERSTEP_CUPS", "3"}}), (Ended{0, "made 3\n", "event=tea_made\n"}));
}

TEST(CommandLine, PrintsHelpAndVersion) {
  EXPECT_EQ(run({"--version"}), (Ended{0, "everstep " + std::string(kVersion) + "\n", ""}));
  EXPECT_EQ(run({"--help"}).out.substr(0, 24), "usage: everstep <command");
  EXPECT_EQ(run({"-h"}), run({"--help"}));
  EXPECT_EQ(run({"brew", "--help"}).out.substr(0, 20), "usage: everstep brew");
  EXPECT_EQ(run({"brew", "-h"}).exit_code, 0);
}

TEST(CommandLine, HelpIsACommandToo) {
  EXPECT_EQ(run({"help"}), run({"--help"}));
  EXPECT_EQ(run({"help", "brew"}), run({"brew", "--help"}));
  EXPECT_EQ(run({"help", "pot"}), run({"pot", "--help"}));
  EXPECT_EQ(run({"help", "pot", "rinse"}), run({"pot", "rinse", "--help"}));
  EXPECT_EQ(run({"help", "berw"}), failed(64, "unknown command 'berw' (hint: did you mean brew?)"));
}

TEST(CommandLine, AnEventBeginsWithTheTime) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  streams.log_time = [] { return std::string("time=noon "); };
  run_command_line(toy_commands(), {{"brew", "--cups=2"}, {}}, streams);
  EXPECT_EQ(log.str(), "time=noon event=tea_made\n");
}

TEST(CommandLine, HelpFitsANarrowTerminal) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  streams.out_columns = 60;
  run_command_line(toy_commands(), {{"brew", "--help"}, {}}, streams);
  std::istringstream lines(out.str());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 60U) << line;
}

TEST(CommandLine, RefusesWhatIsNoCommand) {
  EXPECT_EQ(run({}), failed(64, "a command is missing (hint: everstep --help lists the commands)"));
  EXPECT_EQ(run({"berw"}), failed(64, "unknown command 'berw' (hint: did you mean brew?)"));
  EXPECT_EQ(run({"sugar"}), failed(64, "unknown command 'sugar' (hint: everstep --help lists the commands)"));
  EXPECT_EQ(run({""}), failed(64, "unknown command '' (hint: everstep --help lists the commands)"));
  EXPECT_EQ(run({"--verson"}), failed(64, "unknown option --verson (hint: did you mean --version?)"));
  EXPECT_EQ(run({"--version", "brew"}).exit_code, 64);
  EXPECT_EQ(run({"--cups=2", "brew"}), failed(64, "unknown option --cups (hint: everstep --help lists the options)"));
}

TEST(CommandLine, ACommandMayHaveTwoWords) {
  EXPECT_EQ(run({"pot", "rinse"}), (Ended{0, "rinsed\n", ""}));
  EXPECT_EQ(run({"pot", "rinse", "vinegar", "--heat=2"}), (Ended{0, "rinsed vinegar\n", ""}));
  EXPECT_EQ(run({"pot", "rinse", "--help"}).out.substr(0, 25), "usage: everstep pot rinse");
  EXPECT_EQ(run({"pot", "--help"}).out.substr(0, 29), "usage: everstep pot <command>");
  EXPECT_EQ(run({"brew", "--cups=2"}, {{"EVERSTEP_HEAT", "2"}}).exit_code, 0) << "a part's option is known to all";
  EXPECT_EQ(run({"pot"}), failed(64,
                                 "a command is missing after everstep pot (hint: everstep pot --help lists the "
                                 "commands)"));
  EXPECT_EQ(run({"pot", "rinze"}), failed(64, "unknown command 'pot rinze' (hint: did you mean pot rinse?)"));
  EXPECT_EQ(run({"pot", "--heat=2"}), failed(64,
                                             "unknown option --heat (hint: everstep pot --help lists the "
                                             "options)"));
  EXPECT_EQ(run({"pot", "rinse", "a", "b"}).exit_code, 64);
}

TEST(CommandLine, MistakesInArgumentsAreUsageErrors) {
  EXPECT_EQ(run({"brew", "--cusp=2"}), failed(64, "unknown option --cusp (hint: did you mean --cups?)"));
  EXPECT_EQ(run({"brew", "--cups=2", "--cups=2"}), failed(64, "--cups is given 2 times"));
  EXPECT_EQ(run({"brew", "--cups=0"}), failed(64, "--cups=0: expected an integer from 1 to 9"));
  EXPECT_EQ(run({"brew"}), failed(64, "--cups is missing (hint: everstep brew --help says what it is)"));
  EXPECT_EQ(run({"brew", "--print-config=maybe"}), failed(64, "--print-config=maybe: expected true or false"));
}

TEST(CommandLine, MistakesElsewhereAreConfigurationErrors) {
  EXPECT_EQ(run({"brew"}, {{"EVERSTEP_CUPS", "0"}}), failed(78, "EVERSTEP_CUPS=0: expected an integer from 1 to 9"));
  EXPECT_EQ(run({"brew"}, {{"EVERSTEP_CUSP", "0"}}),
            failed(78, "unknown environment variable EVERSTEP_CUSP (hint: did you mean EVERSTEP_CUPS?)"));
  EXPECT_EQ(run({"brew", "--cups=8"}), failed(78, "eight cups need a larger pot"));
}

TEST(CommandLine, AnErrorIsOneLine) {
  EXPECT_EQ(run({"brew", "--cups=7"}), failed(69, "the kettle?does not answer"));
  EXPECT_EQ(run({"brew", "--cups=\x1b[1m\n"}), failed(64, "--cups=?[1m?: expected an integer from 1 to 9"));
}

TEST(CommandLine, OptionsOfOtherCommandsMayStandInTheEnvironment) {
  EXPECT_EQ(run({"drink"}, {{"EVERSTEP_CUPS", "2"}}), (Ended{0, "", ""}));
  EXPECT_EQ(run({"brew", "--cups=2"}, {{"EVERSTEP_SPEED", "2"}}).exit_code, 0);
}

TEST_F(CommandFileTest, ReadsItsFile) {
  const std::string path = file("cups = 4 # four\nspeed = 9\n");
  EXPECT_EQ(run({"brew", "--config=" + path}).out, "made 4\n");
  EXPECT_EQ(run({"brew"}, {{"EVERSTEP_CONFIG", path}}).out, "made 4\n");
  EXPECT_EQ(run({"brew", "--config=" + path}, {{"EVERSTEP_CUPS", "5"}}).out, "made 5\n");
  EXPECT_EQ(run({"brew", "--config=" + path, "--cups=6"}, {{"EVERSTEP_CUPS", "5"}}).out, "made 6\n");
}

TEST_F(CommandFileTest, RefusesABadFile) {
  const std::string path = file("\ncups = x\n");
  EXPECT_EQ(run({"brew", "--config=" + path}), failed(78, path + " line 2: cups = x: expected an integer from 1 to 9"));
  const std::string missing = directory_.file("none");
  EXPECT_EQ(run({"brew", "--config=" + missing}), failed(64, "cannot read " + missing + ": No such file or directory"));
  EXPECT_EQ(run({"brew"}, {{"EVERSTEP_CONFIG", missing}}),
            failed(78, "cannot read " + missing + ": No such file or directory"));
  EXPECT_EQ(run({"brew", "--config=" + directory_.path().string()}),
            failed(64, "cannot read " + directory_.path().string() + ": Is a directory"));
  EXPECT_EQ(run({"brew", "--config=/dev/zero"}), failed(64, "cannot read /dev/zero: it has more than 1048576 bytes"));
}

TEST_F(CommandFileTest, PrintsTheConfigurationInsteadOfRunning) {
  const std::string path = file("kind = black\n");
  const Ended ended = run({"brew", "--config=" + path, "--print-config", "--cups=2"}, {{"EVERSTEP_JSON", "true"}});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.log, "");
  EXPECT_NE(ended.out.find("# --cups\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("# " + path + " line 1\n"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("# EVERSTEP_JSON\n"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("made"), std::string::npos);
}

TEST_F(CommandFileTest, RefusesAPrintedConfigurationThatTheCommandWouldRefuse) {
  const Ended ended = run({"brew", "--print-config", "--cups=0"});
  EXPECT_EQ(ended.exit_code, 64);
  EXPECT_EQ(ended.log, "everstep: --cups=0: expected an integer from 1 to 9\n");
  EXPECT_NE(ended.out.find("# --cups\n"), std::string::npos) << "where it is from is told all the same";
}

TEST(CommandLine, SaysWhatItIgnores) {
  std::vector<Command> commands = toy_commands();
  commands.front().spec.options[3].command_line_only = true;  // svg
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  run_command_line(commands, {{"brew", "--cups=2"}, {{"EVERSTEP_SVG", "pot.svg"}}}, streams);
  EXPECT_EQ(log.str(),
            "event=setting_ignored setting=\"EVERSTEP_SVG=pot.svg\" reason=\"it names a file to write: only the "
            "command line may\"\nevent=tea_made\n");
}

}  // namespace
}  // namespace everstep::launcher
