#pragma once

#include <memory>
#include <string>
#include <vector>

#include "launcher/cli/command.h"
#include "launcher/cli/values.h"
#include "launcher/job/checkpoint_store.h"

namespace everstep::launcher {

// The job that a part of `everstep checkpoint` works on.
struct CheckpointTool {
  StoreLocation location;
  std::unique_ptr<CheckpointStore> store;
  storage::CatalogListing listing;
};

// The options that name the job, others of the command's, and --json.
std::vector<OptionSpec> checkpoint_tool_options(std::vector<OptionSpec> others = {});

// Reads the options that name the job and opens it. A job that is not there is the user's mistake.
Outcome open_tool(const Config& config, Values& values, CheckpointTool& tool);

// The checkpoint that the argument at that place names, or the newest if there is no such argument.
Outcome choose(const Config& config, const CheckpointTool& tool, std::size_t place, storage::CatalogEntry& entry);

// "CHECKPOINT", at most one, or exactly one.
PositionalSpec checkpoint_argument(bool required);

}  // namespace everstep::launcher
