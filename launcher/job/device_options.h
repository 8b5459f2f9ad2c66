#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "launcher/cli/config.h"
#include "launcher/cli/options.h"

namespace everstep::launcher {

inline constexpr const char* kHostDevice = "cpu";
inline constexpr const char* kAnyDevice = "auto";

inline constexpr const char* kHostTransport = "host";
inline constexpr const char* kNcclTransport = "nccl";
inline constexpr const char* kAnyTransport = "auto";

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

// How tensors travel between the devices of different workers: one of the three above. Of `everstep train`, and in the
// job's spec. "host": through pinned memory and over the wire between the hosts, for all. Otherwise by NCCL, if all
// workers of a plan have it in one version; with "nccl" each has to have one. On the CPU there is nothing to choose.
OptionSpec transport_option();
Outcome read_transport(const Config& config, std::string& transport);

}  // namespace everstep::launcher
