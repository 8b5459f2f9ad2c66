#include "launcher/cli/host.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <unistd.h>

namespace everstep::launcher {
namespace {

// A line such as "VmRSS:     1234 kB" of this process.
std::int64_t status_bytes(std::string_view name) {
  std::ifstream status("/proc/self/status");
  std::int64_t kibibytes = 0;
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(name)) continue;
    kibibytes = std::stoll(line.substr(name.size()));
    break;
  }
  return kibibytes * 1024;
}

}  // namespace

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::int64_t host_memory_bytes() { return std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGE_SIZE); }

std::int64_t resident_bytes() { return status_bytes("VmRSS:"); }

std::int64_t peak_resident_bytes() { return status_bytes("VmHWM:"); }

void reset_peak_resident_bytes() { std::ofstream("/proc/self/clear_refs") << "5"; }

Tick monotonic_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string sibling_program(const std::string& name) {
  std::error_code unreadable;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unreadable);
  return (self.parent_path() / name).string();
}

}  // namespace everstep::launcher
