#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "launcher/cli/config.h"
#include "launcher/cli/options.h"
#include "storage/hashing.h"

namespace everstep::launcher {

// Who a worker process is, besides what all of them were asked for.
struct WorkerIdentity {
  int rank = 0;
  std::uint64_t lineage = 0;
  std::string output;
  Generation generation{};                      // of this run among those of the lineage
  std::optional<storage::Digest> start_from{};  // the manifest of the checkpoint to resume from
  std::optional<int> device_number{};           // among the devices of the run's kind

  bool operator==(const WorkerIdentity&) const = default;
};

// The command line of a worker: every setting of the run as it is in force, wherever it came from, so that a worker
// depends on no file and no environment.
std::vector<std::string> worker_arguments(const Config& config, const WorkerIdentity& identity);

struct WorkerInvocation {
  Config config;  // of the run
  WorkerIdentity identity;
};

Result<WorkerInvocation> read_worker_arguments(const std::vector<std::string>& args);

}  // namespace everstep::launcher
