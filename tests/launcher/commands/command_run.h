#pragma once

#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "launcher/cli/files.h"
#include "launcher/commands/commands.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {

struct CommandRun {
  int exit_code = 0;
  std::string out;
  std::string log;
};

// Runs one of the program's commands in this process.
inline CommandRun run_command(const std::vector<std::string>& args, const Environment& environment = {}) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log};
  const ExitCode code = run_command_line(all_commands(), {args, environment}, streams);
  return {static_cast<int>(code), out.str(), log.str()};
}

// What a command that fails says, after checking that it says nothing else.
inline std::string failure_of(const std::vector<std::string>& args, int exit_code,
                              const Environment& environment = {}) {
  const CommandRun run = run_command(args, environment);
  EXPECT_EQ(run.exit_code, exit_code) << run.log;
  EXPECT_EQ(run.out, "");
  const std::string start = "everstep: ";
  EXPECT_EQ(run.log.substr(0, start.size()), start);
  EXPECT_EQ(run.log.find('\n'), run.log.size() - 1) << run.log;
  return run.log.substr(start.size(), run.log.size() - start.size() - 1);
}

// Has a directory for the files of one test.
class CommandFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_.file(name); }
  std::string file(const std::string& name, const std::string& text) const {
    EXPECT_TRUE(write_file(path(name), text).ok());
    return path(name);
  }
  std::string text_of(const std::string& name) const {
    const auto text = read_file(path(name), std::size_t{64} << 20);
    EXPECT_TRUE(text.ok());
    return text.ok() ? *text : "";
  }

 private:
  TemporaryDirectory directory_;
};

}  // namespace everstep::launcher
