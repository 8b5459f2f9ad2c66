#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "launcher/cli/command.h"
#include "launcher/job/train_request.h"
#include "launcher/proof/replay_comparison.h"
#include "storage/json/json.h"

namespace everstep::launcher {

struct ReplayRequest {
  std::optional<std::int64_t> to_step;    // nothing: HEAD
  std::optional<std::int64_t> from_step;  // nothing: the beginning
  std::string data;                       // empty: where it was when the checkpoint was written
  storage::Settings provenance;           // of this program's kernels, for the case that bits differ
};

struct ReplayReport {
  int window = 1;  // minibatches per update
  Position from;
  Position to;               // where the replay was to end
  std::int64_t windows = 0;  // updates
  std::int64_t losses = 0;
  std::int64_t checkpoints = 0;
  bool exact = true;      // fixed-point sums: equal means equal bits
  Difference difference;  // the first one; the replay ended there
  std::string hint;       // what may be the reason, empty if nothing is known
};

// Re-runs what a job has committed with the reference executor, and compares every loss on the way and the whole state
// of every checkpoint that is kept. kNotFound: between these steps there is nothing to compare. `hooks_of` gives what
// the reference needs to compute; the request outlives it.
using ReferenceHooks = std::function<trainer::TrainHooks(const TrainRequest& asked)>;
Result<ReplayReport> replay(CheckpointStore& store, const ReplayRequest& request, const ReferenceHooks& hooks_of,
                            Streams& streams);

// "from step 0 to step 60: 60 windows, 960 losses, 4 checkpoints: all bits equal", or what differs.
std::string replay_text(const ReplayReport& report);
storage::Json replay_json(const ReplayReport& report);

}  // namespace everstep::launcher
