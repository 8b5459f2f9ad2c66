#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/result.h"

namespace everstep::launcher {

// A process of the `etcd` program. It is a process group of its own, so that Ctrl-C does not end it before us, and dies
// when the thread that started it ends, however that happens.
class EtcdProcess {
 public:
  // What it prints is added to `log`. kNotFound: there is no such program.
  static Result<EtcdProcess> start(const std::vector<std::string>& args, const std::filesystem::path& log);

  EtcdProcess(EtcdProcess&& other) noexcept;
  EtcdProcess& operator=(EtcdProcess&& other) noexcept;
  ~EtcdProcess() { stop(std::chrono::milliseconds(0)); }

  pid_t pid() const { return pid_; }  // -1: it was waited for
  bool is_running();
  void signal(int number) const;
  // Asks it to end, kills it if it has not within `patience`, and waits for it.
  void stop(std::chrono::milliseconds patience);

 private:
  explicit EtcdProcess(pid_t pid) : pid_(pid) {}

  pid_t pid_ = -1;
};

// A port of the loopback device that nobody listens at now. Not one of those that the system hands out by itself, so
// that it most likely stays free.
int unused_port();

}  // namespace everstep::launcher
