#include "launcher/rehearse/chaos/slow_disk.h"

#include <csignal>
#include <string>

namespace everstep::launcher::chaos {
namespace {

constexpr std::chrono::milliseconds kStraceEndsWithin{3000};

}  // namespace

bool SlowDisk::is_possible() {
  auto strace = ChildProcess::start({"strace", "-qq", "-o", "/dev/null", "true"}, "/dev/null");
  return strace && strace->ends_within(kStraceEndsWithin) && strace->wait_status() == 0;
}

Result<SlowDisk> SlowDisk::start(const std::vector<pid_t>& processes, std::chrono::microseconds delay,
                                 const std::filesystem::path& log) {
  std::vector<std::string> words{"strace",
                                 "-f",
                                 "-qq",
                                 "-o",
                                 "/dev/null",
                                 "-e",
                                 "trace=fsync,fdatasync",
                                 "-e",
                                 "inject=fsync,fdatasync:delay_enter=" + std::to_string(delay.count())};
  for (const pid_t process : processes) {
    words.emplace_back("-p");
    words.push_back(std::to_string(process));
  }
  auto strace = ChildProcess::start(std::move(words), log);
  if (!strace) return strace.error();
  return SlowDisk(std::move(*strace));
}

void SlowDisk::stop() {
  strace_.signal(SIGINT);
  if (strace_.ends_within(kStraceEndsWithin)) return;
  strace_.signal(SIGKILL);
  strace_.ends_within(kStraceEndsWithin);
}

}  // namespace everstep::launcher::chaos
