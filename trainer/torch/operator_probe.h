#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace everstep::trainer {

// What one operator of ops.h made of numbers that are the same on every machine: a hash of all that it wrote.
struct OperatorBits {
  std::string name;         // "adamw_"
  std::uint64_t bits = 0;   // here
  std::uint64_t known = 0;  // wherever the operator is right: its arithmetic is the same everywhere

  bool operator==(const OperatorBits&) const = default;
};

// Runs every operator whose arithmetic is the same everywhere, in all its types, on a device that list_devices() has,
// or on the host ("cpu"). Products and attention are not: each device has the bits of its libraries. kInternal: the
// device failed, and says why.
Result<std::vector<OperatorBits>> probe_operators(const std::string& kind, int number);

}  // namespace everstep::trainer
