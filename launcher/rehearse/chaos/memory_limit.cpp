#include "launcher/rehearse/chaos/memory_limit.h"

#include <atomic>
#include <fstream>
#include <string>
#include <system_error>

#include <unistd.h>

namespace everstep::launcher::chaos {
namespace {

constexpr const char* kFirstVersion = "/sys/fs/cgroup/memory";
constexpr const char* kSecondVersion = "/sys/fs/cgroup";
constexpr const char* kRoom = "1048576";

bool write(const std::filesystem::path& file, const std::string& value) {
  std::ofstream out(file);
  out << value << std::flush;
  return static_cast<bool>(out);
}

}  // namespace

bool MemoryLimit::is_possible() { return make().ok(); }

Result<std::unique_ptr<MemoryLimit>> MemoryLimit::make() {
  static std::atomic<int> made{0};
  const std::string name = "everstep-chaos-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
  std::error_code error;
  const bool is_first = std::filesystem::exists(kFirstVersion, error);
  const std::filesystem::path cgroup = std::filesystem::path(is_first ? kFirstVersion : kSecondVersion) / name;
  std::unique_ptr<MemoryLimit> limit(new MemoryLimit(cgroup));
  const bool is_made = std::filesystem::create_directory(cgroup, error) &&
                       write(cgroup / (is_first ? "memory.limit_in_bytes" : "memory.max"), kRoom);
  if (!is_made) return Error{ErrorCode::kUnavailable, "cannot limit the memory of a cgroup " + cgroup.string(), ""};
  return limit;
}

MemoryLimit::~MemoryLimit() { ::rmdir(cgroup_.c_str()); }

Status MemoryLimit::confine(pid_t process) const {
  if (write(cgroup_ / "cgroup.procs", std::to_string(process))) return {};
  return Error{ErrorCode::kUnavailable, "cannot move process " + std::to_string(process) + " to " + cgroup_.string(),
               ""};
}

}  // namespace everstep::launcher::chaos
