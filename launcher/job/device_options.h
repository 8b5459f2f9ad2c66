#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/cli/options.h"

namespace everstep::launcher {

inline constexpr const char* kHostDevice = "cpu";
inline constexpr const char* kAnyDevice = "auto";

// What --device says: "cpu", "cuda", "cuda:1", "auto".
struct DeviceName {
  std::string kind;
  std::optional<int> number{};

  bool is_host() const { return kind == kHostDevice; }
  bool operator==(const DeviceName&) const = default;
};

// Whether there is such a kind only the worker program knows, which has LibTorch.
Result<DeviceName> parse_device(const std::string& text);

// Of `everstep train`. The kind is the whole job's, and stands in its spec; which one of them a worker has is its
// host's business.
OptionSpec device_option();

}  // namespace everstep::launcher
