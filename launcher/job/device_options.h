#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/cli/config.h"
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

// What --device of a command says; the CPU if it does not.
Outcome read_device_name(const Config& config, DeviceName& name);

// Of `everstep train`. The kind is the whole job's, and stands in its spec; which one of them a worker has is its
// host's business.
OptionSpec device_option();

// How tensors travel between the devices of different workers, as --transport says it, and what it comes to: "host",
// through pinned memory and over the wire between the hosts. Of `everstep train`, and for all workers of a job alike.
// On the CPU there is nothing to choose.
OptionSpec transport_option();
Outcome read_transport(const Config& config, std::string& transport);

}  // namespace everstep::launcher
