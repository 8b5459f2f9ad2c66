#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace everstep::trainer {

struct DeviceFacts {
  std::string name;               // as its maker calls it
  std::int64_t memory_bytes = 0;  // all that it has; 0: not known

  bool operator==(const DeviceFacts&) const = default;
};

// What LibTorch does not tell of a kind of device.
struct DeviceKind {
  std::string name;  // as --device names it: "cuda"
  // Those that this process sees, by number. An error says in one line why there is none.
  std::function<Result<std::vector<DeviceFacts>>()> list;
  // As LibTorch names the device of that number.
  std::function<std::string(int number)> torch_name;
  // What bits depend on besides: versions and settings, by name.
  std::function<std::vector<std::pair<std::string, std::string>>()> provenance;
};

}  // namespace everstep::trainer
