#pragma once

#include <memory>
#include <vector>

#include "launcher/cli/command.h"
#include "launcher/cli/values.h"
#include "launcher/job/checkpoint_store.h"

namespace everstep::launcher {

// The job that `everstep audit` and `everstep replay` look at: CHECKPOINT-DIR is their argument.
struct OpenedJob {
  StoreLocation location;
  std::unique_ptr<CheckpointStore> store;
};

PositionalSpec job_directory_argument();

// --job and --secret-file, others of the command's, and --json.
std::vector<OptionSpec> job_directory_options(std::vector<OptionSpec> others = {});

// Reads them and opens the job. A job that is not there is the user's mistake.
Outcome open_job_directory(const Config& config, Values& values, OpenedJob& job);

}  // namespace everstep::launcher
