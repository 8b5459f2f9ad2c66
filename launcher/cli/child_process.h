#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace everstep::launcher {

// Ours, but for the variables that begin so: what people set for their own runs of a program must not change ours.
std::vector<std::string> environment_without(std::string_view prefix);

// A process that we started. It is a process group of its own, so that Ctrl-C reaches only us, and is killed when the
// thread that started it ends, however that happens, or when this object goes.
class ChildProcess {
 public:
  // `words` begin with the program, which is looked for in PATH unless it has a slash. Its output and log are added to
  // the file. kNotFound: there is no such program.
  static Result<ChildProcess> start(std::vector<std::string> words, const std::filesystem::path& log,
                                    std::vector<std::string> environment = environment_without("EVERSTEP_"));

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  pid_t pid() const { return pid_; }
  bool is_running();
  bool ends_within(std::chrono::milliseconds limit);
  void signal(int number) const;  // nothing happens once it was seen to have ended
  // Asks it to end, kills it if it has not within `patience`, and waits for it.
  void stop(std::chrono::milliseconds patience);
  // As waitpid tells it; nothing while it runs.
  std::optional<int> wait_status() const { return wait_status_; }

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;
  std::optional<int> wait_status_;
};

}  // namespace everstep::launcher
