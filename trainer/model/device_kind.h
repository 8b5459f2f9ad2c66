#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace everstep::trainer {

struct DeviceFacts {
  std::string name;               // as its maker calls it
  std::int64_t memory_bytes = 0;  // all that it has; 0: not known
  std::string no_nccl{};          // why NCCL does not reach it; empty: it does
  std::string id{};               // no other on the host has it, whatever its number in a process; empty: not known

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
  // How much of the memory of the device of that number is taken; nothing: it does not say.
  std::function<std::optional<std::int64_t>(int number)> bytes_in_use;
};

}  // namespace everstep::trainer
