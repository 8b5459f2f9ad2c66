#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"

namespace everstep::launcher::chaos {

// A file system in memory that is small enough to be full soon. It is seen by this process and those that it starts
// from then on, and by nobody else, and goes with the last of them: nothing is left to unmount. Needs root.
class SmallDisk {
 public:
  static bool is_possible();

  // At `path`, which must be a directory. Made before any thread.
  static Result<std::unique_ptr<SmallDisk>> mount(std::filesystem::path path, int mebibytes = 32);

  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk();

  Status fill() const;  // to the last byte
  void make_room() const;

 private:
  explicit SmallDisk(std::filesystem::path path) : path_(std::move(path)) {}

  std::filesystem::path ballast() const { return path_ / "ballast"; }

  const std::filesystem::path path_;
};

}  // namespace everstep::launcher::chaos
