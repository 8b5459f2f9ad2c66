#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::scheduler {

enum class ScheduleKind {
  kAmdp,           // asynchronous multi-directional pipelines, P = D/2
  kAmdpSync,       // the same orders, drained at the end of every window
  kOneFOneB,       // one pipeline, one forward one backward; D = 1 is plain accumulation
  kTwoDirections,  // two pipelines in opposite directions, drained at the end of every window
  kGpipe,          // all forwards, then all backwards
  kInterleaved,    // one pipeline, several chunks per device
  kPipedream2bw,   // asynchronous, two weight versions, updates local to a stage; a baseline to compare with
  kClockwork,      // asynchronous, backwards split in two, P pipelines that all climb the ring: see clockwork.h
  kClockworkSync,  // the same orders, drained at the end of every window
};

std::string_view to_string(ScheduleKind kind);
Result<ScheduleKind> parse_schedule_kind(std::string_view text);

// All kinds in the order above.
const std::vector<ScheduleKind>& all_schedule_kinds();

// Whether the pipeline stays full across an update, so that some minibatches meet two weight versions.
constexpr bool is_asynchronous(ScheduleKind kind) {
  return kind == ScheduleKind::kAmdp || kind == ScheduleKind::kPipedream2bw || kind == ScheduleKind::kClockwork;
}

constexpr bool is_clockwork(ScheduleKind kind) {
  return kind == ScheduleKind::kClockwork || kind == ScheduleKind::kClockworkSync;
}

// Whether workers can run it. The others can be drawn, timed and compared.
constexpr bool is_trainable(ScheduleKind kind) { return kind != ScheduleKind::kPipedream2bw; }

// Whether its drawings, timing and checks have backwards in two halves: the gradient of the input has a place in the
// lists, the gradients of the weights are computed when there is time. Workers split the backwards of every kind, and
// memory is counted for that; the times of the others are those of whole backwards.
constexpr bool splits_backwards(ScheduleKind kind) { return is_clockwork(kind); }

// Whether AMDP's symmetric placement exists at this depth.
constexpr bool is_amdp_depth(int depth) { return depth == 2 || (depth >= 4 && depth % 4 == 0); }

// Who holds which stage inside one group of `depth` devices. Pipeline j visits stages 0..S-1 on the devices that
// `device_of` names; a device that holds stage s for pipeline j holds a *chunk*, and it holds every stage at most once.
// Groups (data-parallel replicas) are copies of each other and do not appear here.
class Placement {
 public:
  // `chunks_per_device` matters for kInterleaved only, `pipelines` for kClockwork and kClockworkSync (0: as many as
  // usual). Fails when the kind has no placement at that depth.
  static Result<Placement> make(ScheduleKind kind, int depth, int chunks_per_device = 2, int pipelines = 0);

  ScheduleKind kind() const { return kind_; }
  int depth() const { return depth_; }
  int pipelines() const { return pipelines_; }
  int stages() const { return stages_; }

  // Minibatches that a group has in a round: one per pipeline in clockwork, D in all other kinds.
  int round_size() const { return is_clockwork(kind_) ? pipelines_ : depth_; }

  int device_of(int pipeline, int stage) const { return device_of_[pipeline * stages_ + stage]; }

  // Stages that the device holds, ascending; the same number on every device.
  const std::vector<int>& stages_on(int device) const { return stages_on_[device]; }

  // Devices that hold a replica of the stage, ascending.
  const std::vector<int>& replicas_of(int stage) const { return replicas_of_[stage]; }

  // The device that keeps optimizer state for the stage: pipeline 0's replica. In AMDP that is device s.
  int owner_of(int stage) const { return device_of(0, stage); }

  // Devices whose stage replicas synchronise with each other: closed sets, numbered from 0. AMDP has two (edge and
  // inner devices), clockwork D/P, two directions pair device g with D-1-g, a single pipeline has one set per device.
  int mirror_group_of(int device) const { return mirror_group_of_[device]; }

  // Edge devices take in minibatches (stage 0) and, in AMDP from depth 4 on, also hold a last stage.
  bool is_edge(int device) const { return is_edge_[device]; }

 private:
  Placement(ScheduleKind kind, int depth, int pipelines, int stages, std::vector<int> device_of);

  ScheduleKind kind_;
  int depth_;
  int pipelines_;
  int stages_;
  std::vector<int> device_of_;
  std::vector<std::vector<int>> stages_on_;
  std::vector<std::vector<int>> replicas_of_;
  std::vector<int> mirror_group_of_;
  std::vector<bool> is_edge_;
};

}  // namespace everstep::scheduler
