#pragma once

#include <filesystem>
#include <memory>

#include <sys/types.h>

#include "base/result.h"

namespace everstep::launcher::chaos {

// A memory cgroup with next to no room. A process that is put into it keeps the memory that it has; when it wants more,
// the kernel kills it. Needs root and a cgroup file system, of version 1 or 2, that may be written. The cgroup goes
// with this object, if nobody is left in it.
class MemoryLimit {
 public:
  static bool is_possible();

  static Result<std::unique_ptr<MemoryLimit>> make();

  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit();

  Status confine(pid_t process) const;

 private:
  explicit MemoryLimit(std::filesystem::path cgroup) : cgroup_(std::move(cgroup)) {}

  const std::filesystem::path cgroup_;
};

}  // namespace everstep::launcher::chaos
