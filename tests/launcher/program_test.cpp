#include "tests/launcher/program.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/version.h"

namespace everstep::launcher {
namespace {

TEST(Program, KnowsItsVersion) {
  const Ended ended = run_program({"--version"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out, "everstep " + std::string(kVersion) + "\n");
  EXPECT_EQ(ended.log, "");
}

TEST(Program, PrintsHelpOnStandardOutput) {
  const Ended ended = run_program({"--help"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.out.substr(0, 15), "usage: everstep");
  EXPECT_EQ(ended.log, "");
}

TEST(Program, PrintsAnErrorOnceOnStandardError) {
  const Ended ended = run_program({"no-such-command"});
  EXPECT_EQ(ended.exit_code, 64);
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(ended.log, "everstep: unknown command 'no-such-command' (hint: everstep --help lists the commands)\n");
}

TEST(Program, WithoutArgumentsIsAUsageError) { EXPECT_EQ(run_program({}).exit_code, 64); }

TEST(Program, ReadsItsEnvironmentAndItsFile) {
  const Ended variable = run_program({"plan"}, {"EVERSTEP_NO_SUCH_OPTION=1"});
  EXPECT_EQ(variable.exit_code, 78);
  EXPECT_EQ(variable.log, "everstep: unknown environment variable EVERSTEP_NO_SUCH_OPTION\n");
  EXPECT_EQ(variable.out, "");
  const Ended missing = run_program({"plan", "--config=no/such.conf"});
  EXPECT_EQ(missing.exit_code, 64);
  EXPECT_EQ(missing.log, "everstep: cannot read no/such.conf: No such file or directory\n");
  const std::string path = testing::TempDir() + "everstep-program-test.conf";
  std::ofstream(path) << "# the next line is wrong\nworkers\n";
  const Ended damaged = run_program({"plan"}, {"EVERSTEP_CONFIG=" + path});
  EXPECT_EQ(damaged.exit_code, 78);
  EXPECT_EQ(damaged.log, "everstep: " + path + " line 2: expected name = value, got 'workers'\n");
  std::filesystem::remove(path);
}

TEST(Program, EndsQuietlyWhenNobodyReads) {
  const Ended ended = run_program_into("", {"--help"});
  EXPECT_EQ(ended.exit_code, 0);
  EXPECT_EQ(ended.log, "");
}

TEST(Program, SaysThatItsOutputIsLost) {
  const Ended ended = run_program_into("/dev/full", {"--help"});
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_EQ(ended.log, "everstep: cannot write to standard output: No space left on device\n");
}

}  // namespace
}  // namespace everstep::launcher
