#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "launcher/cli/child_process.h"

namespace everstep::launcher::chaos {

// Makes each fsync and fdatasync of some processes longer, by `strace`. It lets go of them when it is ended.
class SlowDisk {
 public:
  static bool is_possible();  // there is a program strace, and it may trace

  static Result<SlowDisk> start(const std::vector<pid_t>& processes, std::chrono::microseconds delay,
                                const std::filesystem::path& log);

  // Asks it to let go; kills it if it does not.
  void stop();
  pid_t pid() const { return strace_.pid(); }

 private:
  explicit SlowDisk(ChildProcess strace) : strace_(std::move(strace)) {}

  ChildProcess strace_;
};

}  // namespace everstep::launcher::chaos
