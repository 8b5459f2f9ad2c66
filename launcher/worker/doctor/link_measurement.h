#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/worker/worker_device.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// What one worker sends another one.
struct LinkFigures {
  double gb_per_s = 0;    // of large tensors, from where they lie to where they are needed
  double latency_us = 0;  // of a small one, one way, the median
  bool is_intact = false;
};

// A way for tensors between two workers.
struct LinkKind {
  std::string name;  // "unix", "tls", "nccl"
  // What of it this build or this host lacks; a device that cannot be used is a failure of measure().
  std::function<Status(const std::vector<WorkerDevice>& devices)> find;
  std::function<Result<LinkFigures>(const WorkerDevice& from, const WorkerDevice& to)> measure;
};

// All ways, between workers of this host: over its sockets, over TLS as between hosts (on the loopback device), and by
// NCCL.
const std::vector<LinkKind>& link_kinds();

// Every way, from each device to the next one; with one device, or on the host, from it to itself. {"links": [{"kind",
// "from", "to", "gb_per_s", "latency_us", "intact"}], "not_checked": [{"kind", "reason"}], "failed": [the same]}.
storage::Json measure_links(const std::vector<WorkerDevice>& devices);

}  // namespace everstep::launcher
