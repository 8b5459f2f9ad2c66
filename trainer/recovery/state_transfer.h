#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "scheduler/profile.h"
#include "scheduler/schedule.h"
#include "trainer/model/model_config.h"
#include "trainer/recovery/end_state.h"
#include "trainer/recovery/state_copies.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Who trains what: as much of a plan as decides who holds which block. Of the schedule only kind, depth, width and
// chunks_per_device are looked at.
struct PlanShape {
  scheduler::ScheduleRequest schedule;
  scheduler::Cuts cuts;

  int workers() const { return schedule.depth * schedule.width; }
};

// What is kept of a block, by who has it.
enum class BlockPart : std::uint8_t {
  kWeights,    // on every replica of its stage
  kOptimizer,  // moments, and under bf16 the master: on the owner of its stage in every group
  kGradients,  // inside a window: on the one worker that writes its stage
};

std::string_view to_string(BlockPart part);

// A block's part that `to` needs comes from `from`; both are numbers in the new transport. The same worker: it has it.
struct BlockMove {
  int block = 0;
  BlockPart part = BlockPart::kWeights;
  int from = 0;
  int to = 0;

  bool operator==(const BlockMove&) const = default;
};

// Who has what, if the origin is put together from the copies that workers of the plan before kept (StateCopies). They
// have the numbers that they had in it.
struct CopyMap {
  std::vector<std::vector<int>> guards;  // per stage
  std::vector<CopyParts> complete;       // by worker: what is complete there at the origin's version
};

// A change from one plan to the next. The new transport numbers the workers of the new plan 0 … n − 1, and behind them
// those that only hand over what they have.
struct TransferRequest {
  PlanShape before;
  std::vector<int> holders;  // by worker of the plan before: its number in the new transport, −1 if it is gone
  PlanShape after;
  bool inside_window = false;  // then gradients move too

  // What the one group of the plan before kept when another one lost a worker: gradients move, and of the past the
  // holder with the lowest number tells all.
  bool is_group_sums = false;

  // Weights, too, then come from owners and guards only: what replicas have is no copy of the origin's version.
  std::optional<CopyMap> copies = std::nullopt;
};

// Numbers in the new transport of those who have any part of the origin, ascending.
std::vector<int> numbers_of_holders(const TransferRequest& change);

// Every part that a worker of the new plan needs, once: from itself where it has it, else from the holder that sends
// least so far. In the order in which links carry them; all workers compute the same. kUnavailable names a block of
// which nobody is left who holds it.
Result<std::vector<BlockMove>> plan_transfer(const TransferRequest& request, const ModelConfig& model);

// The state of all blocks that this worker needs, and where training goes on.
struct MovedState {
  struct Tensors {
    Buffer weights;
    Buffer first_moment;
    Buffer second_moment;
    Buffer master;
    Buffer gradients;
  };

  ResumePoint resume;             // for TrainOptions::resume
  std::map<int, Tensors> blocks;  // flat as layout_of(model, block, block + 1) says; unused parts are empty

  // Of these, what came from other workers.
  std::int64_t received_bytes = 0;
};

struct TransferJob {
  TransferRequest change;
  ModelConfig model;
  Accumulation accumulation = Accumulation::kFloat;
  Position position;  // of the origin: what every holder must be at
  std::uint64_t lineage = 0;
  Generation generation;                      // the new one
  std::chrono::milliseconds timeout{60'000};  // for any one frame
};

// Moves the state, as worker `transport.worker()` of the new transport; every worker of it calls this, before train().
// `end_state` is what this worker has of the plan before, nullptr if it was no part of it. What moved stays valid as
// long as it is kept; local parts share the bytes of `end_state`. A worker outside the new plan gets no blocks, and
// returns when all it sent has left its buffers. After an error the transport is unusable, `end_state` is as it was.
Result<MovedState> move_state(Transport& transport, const TransferJob& job, const EndState* end_state);

// The same, if `job.change.copies` is set: `copies` is what this worker has at the origin's version, nullptr if no part
// of it is complete. Where to go on is what the holder with the lowest number says, for all.
Result<MovedState> move_state(Transport& transport, const TransferJob& job, const CopiedState* copies);

// For TrainHooks::restore: fills the buffers of a chunk that are not empty, block by block.
Status restore_from(const MovedState& moved, const StageLayout& layout, const StageState& state);

}  // namespace everstep::trainer
