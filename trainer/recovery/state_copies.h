#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "trainer/checkpoints/checkpoint.h"
#include "trainer/model/device_memory.h"
#include "trainer/model/model_config.h"
#include "trainer/update/host_memory.h"

namespace everstep::trainer {

// Which parts of a version's owner state a worker has to the last byte. Where there is nothing to have, it has it.
struct CopyParts {
  bool owned = false;
  bool guarded = false;

  bool operator==(const CopyParts&) const = default;
};

// What one worker has of the owner state (weights, both moments, under bf16 the master) at one version.
struct CopiedState {
  // Training goes on at the window's start, drained. `history` as EndState has it, of windows before the version only.
  ResumePoint resume;
  std::vector<StagedStage> owned;    // of the stages that it owns, ascending
  std::vector<StagedStage> guarded;  // of those that it guards, ascending
  CopyParts complete;
};

// A stage that a worker keeps a copy of for its owner.
struct GuardedStage {
  int stage = 0;
  StageLayout layout;
};

// Two versions of the owner state that this worker owns or guards, for recovery from memory; one object per run of
// train(), which it outlives. The way of a version: an update makes it and it is the newest; guards receive it; an
// update exchange that everybody joined only after that proves that all have it; then, right before the next step,
// keep_newest() lets it take the place of the version before, which nobody can need any more. So wherever a run breaks
// off, all have in full the newest version that an exchange has proved.
//
// The newest version's owned part is the bytes that are trained on, which change at a step only: an owner needs memory
// for one copy besides. Guarded parts are two. After the first versions nothing is allocated. Where a device trains,
// all but the bytes that are trained on lie in pinned memory, and end() brings those there, too.
class StateCopies {
 public:
  struct CopiedVersion {
    Version version;
    CopyParts complete;

    bool operator==(const CopiedVersion&) const = default;
  };

  // For whoever asks when the run has ended, in whatever way. At most two, the newest first; versions of which no part
  // is complete are left out.
  std::vector<CopiedVersion> versions() const;

  // Nothing if versions() does not name it. Nobody changes its bytes any more.
  std::shared_ptr<const CopiedState> at(Version version) const;

  // ---- what a run does ----

  // Once, before the first version. `memory`, of the device that trains, must outlive the run.
  void begin(const ModelConfig& model, const std::vector<GuardedStage>& guarded, DeviceMemory& memory = host_memory());

  // A version that is new here: the origin, or what an update made. `owned` must not change before keep_newest().
  // Returns the buffers that copies of the guarded stages are to be received into; these count after guarded_came().
  const std::vector<StagedStage>& add(ResumePoint resume, std::vector<StagedStage> owned);
  void guarded_came();

  // All owners and guards have the newest version, and an update is about to change it here: copies it in the place of
  // the version before.
  void keep_newest();

  // When the run has ended, in whatever way: from now on all lies on the host.
  void end();

 private:
  DeviceMemory* memory_ = nullptr;
  Mark previous_is_here_;
  std::optional<CopiedState> newest_;
  std::optional<CopiedState> previous_;
  std::vector<StagedStage> next_guarded_;  // no part of any version
};

// What the next checkpoint has to tell of the past if training goes on from `origin`, at the start of a window: of
// `known` (what CheckpointWriter::uncommitted() tells and a copy's history, in any order, parts of it twice) every
// entry once, in order, before the origin and not wholly before `committed`, HEAD's position.
std::vector<WindowHistory> untold_history(std::vector<WindowHistory> known, Position committed, Position origin,
                                          int window);

}  // namespace everstep::trainer
