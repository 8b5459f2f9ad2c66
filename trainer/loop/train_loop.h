#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/tick.h"
#include "scheduler/profile.h"
#include "scheduler/schedule.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/loop/flight_recorder.h"
#include "trainer/loop/stop_requests.h"
#include "trainer/model/device_memory.h"
#include "trainer/model/stage_compute.h"
#include "trainer/recovery/end_state.h"
#include "trainer/recovery/state_copies.h"
#include "trainer/update/anomaly.h"
#include "trainer/update/learning_rate.h"
#include "trainer/update/optimizer.h"
#include "trainer/update/replica_check.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// A minibatch that is not run: what it adds to its window's gradient is in the sums already, or it adds nothing. Its
// ops stand in the schedule as ever and pass zeros on, so that nothing else changes.
struct BlankMinibatch {
  Position position;
  double loss = 0;        // counts as its loss
  bool left_out = false;  // it adds nothing, and history says so

  bool operator==(const BlankMinibatch&) const = default;
};

struct TrainOptions {
  // Who runs what: kind, depth, width, window M and preload; `windows` is not looked at. Cuts has one stage per stage
  // of the placement. PipeDream-2BW cannot be trained: its updates are local to a stage.
  scheduler::ScheduleRequest schedule;
  scheduler::Cuts cuts;

  ModelConfig model;
  Accumulation accumulation = Accumulation::kFloat;
  bool stash = false;  // run every backward on the weights of its forward; costs a second copy of each chunk's weights
  AdamOptions adam;
  LearningRate learning_rate;
  std::int64_t steps = 100;         // updates
  std::int64_t evaluate_every = 0;  // updates; 0 = never. The pipeline is drained for it
  std::int64_t evaluate_minibatches = 8;
  CheckpointPolicy checkpoints;       // needs hooks.checkpoints
  std::optional<ResumePoint> resume;  // needs hooks.restore; nothing: from initial weights

  std::vector<BlankMinibatch> blanks;  // positions ascending; those of resume->in_sums need not be named
  AnomalyPolicy anomalies;

  // How long a group that lost nobody may take to stop by itself after a death in another one
  // (trainer/recovery/group_stop.h). 0: it does not.
  std::chrono::milliseconds group_stop_limit{0};

  // Per stage, which workers of the plan besides its owners keep copies of its owner state. Needs hooks.copies; empty:
  // nobody does.
  std::vector<std::vector<int>> guards;

  // Windows between comparisons of the replicas' weights; 1 finds every flipped bit before an update can spread what it
  // did. 0: never. On the host it needs hooks.hash_weights.
  std::int64_t compare_replicas_every = 0;

  std::uint64_t lineage = 0;
  Generation generation;
  std::string plan_text;                           // as histories name the plan
  std::chrono::milliseconds peer_timeout{60'000};  // how long a worker waits for any one frame
};

// What all workers know after an update. The busy fraction is over all workers since the previous update.
struct StepReport {
  std::int64_t step = 0;  // updates so far
  double loss = 0;        // mean over the window's minibatches
  double gradient_norm = 0;
  double learning_rate = 0;
  bool skipped = false;               // the gradient was not finite, or exploded
  double norm_limit = 0;              // skipped because its norm was above this; 0: because it was not finite
  std::int64_t skipped_in_all = 0;    // since the start of training
  std::int64_t skipped_in_a_row = 0;  // up to this one
  double busy = 0;
  Tick at = 0;
  std::vector<Tick> computed{};  // by worker: how long it computed since the previous update
  // By worker, then by the stages that it holds, ascending: the mean time of a minibatch there and back; 0: not known.
  std::vector<std::vector<Tick>> stage_times{};
};

// How the loop reaches the world outside. `now` and `make_stage` must be set.
struct TrainHooks {
  std::function<Tick()> now;
  std::function<std::unique_ptr<StageCompute>(const StageRequest&)> make_stage;
  std::function<void(const StageLayout&, const Buffer& weights)> initialise_weights;
  std::function<void(const StageLayout&, const Buffer& master)> initialise_master;
  // On every worker, after each update. The first call of a run comes when all workers have met at an update exchange:
  // every one of them has the origin in place, which may then be forgotten.
  std::function<void(const StepReport&)> on_step;
  std::function<void()> on_begin;  // the state is in place and the first op comes
  std::function<void(std::int64_t step, double loss)> on_validation;
  std::function<void(const OpRecord&)> on_op;                                        // for --trace
  StopRequests* stops = nullptr;                                                     // none: runs to the end
  std::function<void(int stage, const StageLayout&, const Buffer& weights)> on_end;  // final weights of each chunk
  CheckpointSink* checkpoints = nullptr;

  // Where training happens; nothing: on the host. Must outlive train(). The transport must be able to carry what lies
  // there (trainer/staging). Whatever hooks are given and what train() leaves behind lies on the host; only make_stage
  // is given memory of the device.
  DeviceMemory* device = nullptr;

  // Fills the buffers of `state` that are not empty from the checkpoint to resume from, on every worker and for every
  // chunk it holds.
  std::function<Status(const StageLayout&, const StageState& state)> restore;

  std::function<std::uint64_t(const Buffer& weights)> hash_weights;  // on the host; a device hashes by itself
  // On every worker, before train() fails with kDataLoss because of it.
  std::function<void(const WrongReplica&)> on_wrong_replica;
  // The same of a window that stops the run (options.anomalies).
  std::function<void(const Anomaly&)> on_anomaly;

  FlightRecorder* recorder = nullptr;

  // Where owner state is kept for recovery from memory, on every worker or on none; nullptr: it is not. From the first
  // call of on_step on the origin is among what all workers together have in here, and may be forgotten elsewhere.
  StateCopies* copies = nullptr;
};

enum class RunEnd : std::uint8_t {
  kAllSteps,    // there is nothing left to do
  kSaveAndEnd,  // WindowStop::kSaveAndEnd
  kHandOver,    // WindowStop::kHandOver, or inside a window
  kGroupStop,   // a worker of another group died; what this group has run of the window is in `state`
};

struct TrainResult {
  RunEnd end = RunEnd::kAllSteps;
  std::int64_t steps = 0;    // updates since the start of training
  std::int64_t skipped = 0;  // in this run
  StepReport last;
  std::optional<double> validation_loss;  // the last one measured
  Status saved;    // with options.checkpoints.at_end, unless handing over: whether the end is in a checkpoint
  EndState state;  // what this worker has at the end
};

// Trains as worker `transport.worker()` (group * depth + device), from initial weights, a checkpoint or what was moved
// here, to `options.steps` updates in all or to a requested stop. All workers must be given the same options. The
// transport may have more workers than the plan: those behind have no part in it. Runs the schedule op by op as it
// stands; after a failure, and after RunEnd::kGroupStop, the transport is unusable; after a failure the weights are not
// to be trusted.
Result<TrainResult> train(const TrainOptions& options, const DataSource& data, Transport& transport,
                          const TrainHooks& hooks);

}  // namespace everstep::trainer
