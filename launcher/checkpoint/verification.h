#pragma once

#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_store.h"

namespace everstep::launcher {

// Verifies every byte that the checkpoints name, a file that several name once, on so many threads: for each checkpoint
// whether it is good, or the first thing that is wrong with it. Of the first checkpoint the whole ledger is followed,
// of the others their own segment. kCancelled if a signal asked to stop.
Result<std::vector<Status>> verify_checkpoints(CheckpointStore& store,
                                               const std::vector<storage::CatalogEntry>& entries, int threads,
                                               Streams& streams);

}  // namespace everstep::launcher
