#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "storage/json/json.h"
#include "tests/launcher/checkpoint/small_job.h"
#include "tests/launcher/commands/command_run.h"

namespace everstep::launcher {

inline void flip_a_bit(const std::string& path) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(-5, std::ios::end);
  const auto place = file.tellg();
  const char old = static_cast<char>(file.get());
  file.seekp(place);
  file.put(static_cast<char>(old ^ 1));
}

// A small job, and the parts of `everstep checkpoint` to try on it.
class CheckpointCommands : public CommandFiles {
 protected:
  CheckpointCommands() : job_(path("checkpoints"), small_gpt()) {}

  std::vector<std::string> arguments(const std::string& part, const std::vector<std::string>& more) const {
    std::vector<std::string> all{"checkpoint", part, "--checkpoint-dir=" + path("checkpoints")};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  CommandRun run(const std::string& part, const std::vector<std::string>& more = {}) const {
    return run_command(arguments(part, more));
  }

  std::string refusal(const std::string& part, const std::vector<std::string>& more, int exit_code) const {
    return failure_of(arguments(part, more), exit_code);
  }

  storage::Json json(const std::string& part, std::vector<std::string> more = {}, int exit_code = 0) const {
    more.emplace_back("--json");
    const CommandRun ended = run(part, more);
    EXPECT_EQ(ended.exit_code, exit_code) << ended.log;
    auto parsed = storage::parse_json(ended.out);
    EXPECT_TRUE(parsed.ok()) << ended.out;
    return parsed.ok() ? *parsed : storage::Json();
  }

  SmallJob job_;
};

}  // namespace everstep::launcher
