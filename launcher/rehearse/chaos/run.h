#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/rehearse/chaos/promise.h"
#include "launcher/rehearse/chaos/schedule.h"

namespace everstep::launcher::chaos {

struct RunReport {
  std::vector<Finding> findings;
  double seconds = 0;
  std::int64_t generations = 0;
  std::int64_t commits = 0;
  std::int64_t updates = 0;

  bool holds() const;
};

// As the options of `everstep train` name it.
struct ComputesOn {
  std::string device = "cpu";
  std::string transport = "auto";
};

// Starts etcd servers and a job on a device in `directory`, which is there and empty, makes the faults happen, and
// finds out which promises hold. Prints one line per fault and per promise. An error means that there is no finding:
// programs are missing, a signal asked us to stop (kCancelled), the machine does not let us. When it returns no process
// of the run lives, and nothing is mounted.
Result<RunReport> run_schedule(const Schedule& schedule, const ComputesOn& device,
                               const std::filesystem::path& directory, Streams& streams);

}  // namespace everstep::launcher::chaos
