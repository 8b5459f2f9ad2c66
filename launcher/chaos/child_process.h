#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace everstep::launcher::chaos {

// A process that we started. It is a process group of its own, so that Ctrl-C reaches only us, and is killed when the
// thread that started it ends, however that happens, or when this object goes.
class ChildProcess {
 public:
  // `words` begin with the program, which is looked for in PATH unless it has a slash. Its output and log are added to
  // the file. It does not get our EVERSTEP_… variables. kNotFound: there is no such program.
  static Result<ChildProcess> start(std::vector<std::string> words, const std::filesystem::path& log);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  bool is_running();
  bool ends_within(std::chrono::milliseconds limit);
  void signal(int number) const;  // nothing happens once it was seen to have ended
  // As waitpid tells it; nothing while it runs.
  std::optional<int> wait_status() const { return wait_status_; }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;
  std::optional<int> wait_status_;
};

// "exit code 75", "SIGKILL"
std::string end_text(int wait_status);

// What a process uses now.
struct ProcessUse {
  std::int64_t resident_bytes = 0;
  int descriptors = 0;
  int threads = 0;
};

// Nothing: there is no such process, or it has ended and was not waited for.
std::optional<ProcessUse> use_of(pid_t process);

// Children that have not ended, by their ids.
std::vector<pid_t> living_children(pid_t parent);

// Without the program's name; empty if there is no such process.
std::vector<std::string> arguments_of(pid_t process);

// From now on processes whose parents end become our children: none gets lost.
void adopt_orphans();

// Children when none of our own is left: they outlived whoever started them. Those that have ended are waited for.
std::vector<pid_t> living_orphans();

}  // namespace everstep::launcher::chaos
