#pragma once

#include <chrono>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launcher/job/device_options.h"
#include "trainer/model/device_kind.h"
#include "trainer/socket/file_descriptor.h"

namespace everstep::launcher {

// Tells the other worker processes of this user on this host that a device has a worker. Ends with the object or the
// process, however that ends.
class DeviceClaim {
 public:
  // Of the devices of a kind, by number, the first one that nobody has; or the one with the number in `name`, whoever
  // has it. `directory` is that of all workers; it is made if it is not there. A worker that was killed may still be
  // ending: if each has a worker, kUnavailable comes after `patience`. kInvalidArgument: the directory cannot be used,
  // which is no matter to who wants a certain device.
  static Result<DeviceClaim> take(const DeviceName& name, const std::vector<trainer::DeviceFacts>& devices,
                                  const std::filesystem::path& directory,
                                  std::chrono::milliseconds patience = std::chrono::seconds(5));

  int number() const { return number_; }
  // Another process had it already.
  bool is_shared() const { return is_shared_; }

 private:
  DeviceClaim(trainer::FileDescriptor file, int number, bool is_shared)
      : file_(std::move(file)), number_(number), is_shared_(is_shared) {}

  trainer::FileDescriptor file_;  // with the lock
  int number_;
  bool is_shared_;
};

}  // namespace everstep::launcher
