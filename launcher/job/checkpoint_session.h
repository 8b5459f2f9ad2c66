#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_store.h"
#include "launcher/job/curve.h"
#include "launcher/job/train_plan.h"
#include "trainer/checkpoints/commit_assembly.h"

namespace everstep::launcher {

// The checkpoints of one run, from the side of its supervisor: where they are, and where the run starts.
struct CheckpointSession {
  std::unique_ptr<CheckpointStore> store;
  std::unique_ptr<storage::Lock> lock;  // nobody else commits meanwhile
  std::uint64_t lineage = 0;
  Generation generation;
  std::optional<storage::CatalogEntry> start;     // resumed from; nothing: the beginning
  std::optional<storage::Head> found;             // the newest, good or not
  std::vector<storage::CheckpointName> rejected;  // damaged ones
  bool continues_live = false;                    // from a live checkpoint, under its plan
  Config config;                                  // in force: with the checkpoint's --lr-steps if none was given
  storage::Settings settings;                     // of this run, as its checkpoints keep them
};

// Opens the job's directory, finds where to start as --resume says, and checks that the run may go on from there and
// that the disk has room. Damaged checkpoints become events in the log. `lineage` is for a run that starts at the
// beginning.
Outcome open_session(const Config& config, const TrainRequest& request, const TrainPlan& plan, std::uint64_t lineage,
                     Streams& streams, CheckpointSession& session);

// What all its checkpoints have in common.
trainer::RunFacts facts_of(const CheckpointSession& session, const TrainRequest& request, const TrainPlan& plan);

// About the start of a run that goes on: `event=resumed step=… position=… kind=live plan=same pipeline=continued`.
std::string resumed_event(const CheckpointSession& session, const TrainPlan& plan);

// The curve beside the checkpoints of that lineage, which the request must ask for.
std::unique_ptr<Curve> make_curve(const TrainRequest& request, std::uint64_t lineage);

// What one checkpoint of the model needs at most.
std::uint64_t largest_checkpoint_bytes(const trainer::TrainOptions& options);

}  // namespace everstep::launcher
