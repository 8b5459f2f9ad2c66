#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/model/buffer.h"
#include "trainer/model/device_memory.h"
#include "trainer/model/model_config.h"
#include "trainer/update/update_record.h"

namespace everstep::trainer {

// Where in the run a checkpoint's state was taken.
enum class CutKind : std::uint8_t {
  kFlush,     // at an update with nothing in flight: one version of the weights
  kLive,      // at an update of a full pipeline: the weights that the next window has begun on are part of the state
  kInWindow,  // after a round: with the gradients summed so far
};

std::string_view to_string(CutKind kind);  // "flush", "live", "in-window"

// When to save. A save that is due while a worker still writes the last one is skipped by all workers together.
struct CheckpointPolicy {
  std::int64_t every_updates = 0;  // 0: not by updates
  int every_rounds = 0;            // counted over the windows of a run; 0: not by rounds
  bool at_end = false;             // when the run ends or is stopped

  bool operator==(const CheckpointPolicy&) const = default;
};

// Which cut is due. Of all cuts between one update exchange and the next at most one is taken, since only there do all
// workers know that every writer is idle: the one at the update if that is due, else the first inside the window.
struct DueCut {
  bool at_update = false;          // at the update of this exchange
  std::optional<int> after_round;  // else inside the window that follows, after that round of it

  explicit operator bool() const { return at_update || after_round.has_value(); }
  bool operator==(const DueCut&) const = default;
};

// At the update that makes version `made`, after so many rounds of this run. The window that follows has `next_rounds`,
// and can be cut after `before_cut` of them (Schedule::rounds_before_cut()). A cut that has no place in it comes
// before.
DueCut due_cut(const CheckpointPolicy& policy, Version made, std::int64_t rounds_done, int next_rounds,
               int before_cut = 1);

// The round after which the first cut inside a window of so many rounds is due, if there is one; it waits until the
// window can be cut. A cut after its last round is the one at its update.
std::optional<int> first_cut_inside(const CheckpointPolicy& policy, std::int64_t rounds_done, int rounds,
                                    int before_cut = 1);

// All state of one stage, flat as its layout says. Buffers that have no part in something are empty.
struct StageState {
  Buffer weights;
  Buffer previous;  // the weights one version before
  Buffer first_moment;
  Buffer second_moment;
  Buffer master;         // under bf16
  Buffer gradients;      // sums of float or std::int64_t
  Buffer provisional{};  // what the window after these weights runs on until its update
};

struct StagedStage {
  int stage = 0;
  StageLayout layout;
  StageState state;
};

// What became of minibatches [first, end) of a window, as all workers know it after its update, or after the stop
// inside it. A window that two generations worked on has two entries.
struct WindowHistory {
  std::int64_t window = 0;
  int first = 0;
  int end = 0;
  bool flushed = false;         // this part of it began on a drained pipeline
  bool skipped = false;         // the gradient was not finite, or exploded; known at the window's end only
  Generation generation;        // that ran it
  std::string plan;             // and under which plan: TrainOptions::plan_text
  std::vector<double> losses;   // of minibatches [first, end)
  std::vector<int> left_out{};  // of them, ascending: those that were not run and add nothing
  double norm_limit = 0;        // skipped because its norm was above this; 0: because it was not finite
  bool provisional = false;     // until the update before, it ran on provisional weights

  bool operator==(const WindowHistory&) const = default;
};

// One worker's part of a checkpoint, copied out of the way of training. Workers that own no stage have a part too.
struct StagedCut {
  CutKind kind = CutKind::kFlush;
  Position position;
  Version version;                 // of `weights` and moments
  std::uint32_t nonce = 0;         // the same on all workers
  std::int64_t applied = 0;        // updates that were not skipped
  double clip_scale = 1;           // what the last update multiplied its gradient by
  bool usable = true;              // false: a gradient could not be represented, so there is nothing to resume from
  bool began_drained = false;      // the unfinished window, inside a window only
  bool began_provisional = false;  // the same; on provisional weights
  std::optional<double> validation_loss;  // of this very state, if it was measured
  std::vector<StagedStage> stages;        // to be written by this worker, in memory of the host
  Mark is_here{};                         // when it has passed, the bytes of `stages` are
  std::vector<MinibatchLoss> losses;      // of the cut's minibatches that ended on this worker, inside a window only
  std::vector<WindowHistory> history;     // since the last cut that was handed over
};

// Takes cuts and makes checkpoints of them, behind the training's back. Called by the training thread only.
class CheckpointSink {
 public:
  virtual ~CheckpointSink() = default;

  // Whether the last cut is done with, saved or not. Never waits.
  virtual bool idle() = 0;

  // Takes a cut; only when idle. Its buffers are left alone until idle() is true again. Never waits.
  virtual void save(StagedCut cut) = 0;

  // A save was due at that position, but a worker (perhaps another one) was not idle.
  virtual void skipped(Position position) = 0;

  // Waits until idle, and tells whether the last cut was saved. kCancelled: it was broken off, and takes no more.
  virtual Status finish() = 0;
};

// Where a run continues.
struct ResumePoint {
  Position position;
  Version version;                    // of the newest weights in the checkpoint
  std::int64_t applied = 0;           // updates that were not skipped
  std::int64_t skipped_in_a_row = 0;  // the last ones
  double clip_scale = 1;              // what the last update multiplied its gradient by; 1 if it was skipped

  // The checkpoint is live and the plan is the one it was made under: round 0 runs on the version before, as if nothing
  // had happened. Else a live checkpoint starts on its newest weights, drained.
  bool continues_live = false;
  // It ran on provisional weights there, which the checkpoint has in the stead of the version before.
  bool continues_provisional = false;

  std::vector<MinibatchLoss> losses;  // of the minibatches of an unfinished window that lie before the position

  // False inside a window of which a gradient could not be represented: it will be skipped.
  bool finite = true;

  // What no checkpoint has committed yet of the way here: goes with the next one.
  std::vector<WindowHistory> history;

  // Ranges of the window that starts at `position`, ascending, that an earlier generation has run and nobody runs
  // again: their gradients are in the sums already.
  std::vector<WindowHistory> in_sums;

  bool operator==(const ResumePoint&) const = default;
};

}  // namespace everstep::trainer
