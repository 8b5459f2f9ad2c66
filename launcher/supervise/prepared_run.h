#pragma once

#include <cstdint>
#include <optional>

#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_session.h"
#include "launcher/job/run_directory.h"
#include "launcher/job/run_word.h"
#include "launcher/job/train_plan.h"

namespace everstep::launcher {

// All that is known before the first worker starts.
struct PreparedRun {
  Config config;  // in force
  TrainRequest request;
  TrainPlan plan;
  std::optional<trainer::DataFacts> data;  // nothing: emulated, on no data
  std::uint64_t lineage = 0;
  RunDirectory directory;
  RunLock lock;  // of the directory
  std::optional<CheckpointSession> checkpoints;

  // A run that goes on has been here before.
  std::int64_t steps_before() const {
    return checkpoints && checkpoints->start ? checkpoints->start->manifest.version.value : 0;
  }
  int workers() const { return static_cast<int>(plan.plan.workers.size()); }
};

// What can be checked before there is a plan or a checkpoint directory: the data, above all. Tells what it found.
Outcome check_data(PreparedRun& run);

// Reads the request, plans, and checks all that neither etcd nor checkpoints are needed for: the first part of
// prepare_run. Leaves nothing behind.
Outcome check_run(const Config& config, PreparedRun& run);

// Reads the request, plans, and finds where to start. Everything that can be checked is, before the run's directory is
// made: a refusal leaves nothing behind. `lineage` is for a run that starts at the beginning.
Outcome prepare_run(const Config& config, std::uint64_t lineage, Streams& streams, PreparedRun& run);

// Makes the run's directory, and keeps the configuration there.
Outcome make_directory(PreparedRun& run);

// Two events: what is to be trained on what, with the plan and what it is expected to need, and why that plan.
void log_plan(const PreparedRun& run, Streams& streams);

// Says that all steps were made before.
void tell_idle_run(const PreparedRun& run, Streams& streams);

}  // namespace everstep::launcher
