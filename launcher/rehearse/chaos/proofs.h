#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/proof/audit.h"
#include "launcher/rehearse/chaos/promise.h"

// What the files of a job that has ended are put through. kCancelled: a signal asked us to stop.
namespace everstep::launcher::chaos {

struct SavedJob {
  std::filesystem::path checkpoints;
  std::filesystem::path secret_file;
  std::string device;  // that it was computed on
};

// As `everstep audit`.
Result<AuditReport> audit_checkpoints(const SavedJob& job, Streams& streams);

// BITS, by `everstep replay`: it computes, so the program with LibTorch does it. What it says goes to `log`.
Result<Finding> replay_checkpoints(const SavedJob& job, const std::filesystem::path& log);

// One bit in the middle of the file that was written last.
Status damage_newest(const std::filesystem::path& checkpoints);

}  // namespace everstep::launcher::chaos
