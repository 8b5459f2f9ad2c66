#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "scheduler/op.h"
#include "scheduler/placement.h"

namespace everstep::scheduler {

// What a schedule is made from. Two workers with equal requests compute equal schedules.
struct ScheduleRequest {
  ScheduleKind kind = ScheduleKind::kAmdp;
  int depth = 1;              // D, devices in one group
  int chunks_per_device = 2;  // kInterleaved only
  int pipelines = 0;          // P, kClockwork and kClockworkSync only; 0 = as many as usual (see clockwork.h)
  int width = 1;              // W, groups
  int window = 1;             // M, minibatches per update over all groups; at least depth * width
  int windows = 1;            // how many windows this schedule touches

  std::int64_t first_window = 0;

  // Where the first window starts: greater than 0 when resuming inside it. At `window` nothing of it is left but its
  // update, which asynchronous kinds with one common update apply while the next window runs: so a run resumes from a
  // live checkpoint as if it had never stopped.
  int first_minibatch = 0;

  // Drain after so many super-rounds (at least one) of the last window, instead of at its end; but not before the first
  // of them after which the window can be cut (see rounds_before_cut()). Nothing is applied then; the accumulated
  // gradients are captured and the rest of the window is left to the next plan.
  std::optional<int> stop_after_rounds;

  // Stage-0 forwards of the next round that an edge device runs before the last backward of this one (kAmdp,
  // kAmdpSync): 2 fills the bubble, 1 keeps the minibatches in flight at stage 0 to two.
  int preload = 2;

  // Slots by which an update stands behind the last backward of its window (kClockwork). The larger it is, the more of
  // the reduce is hidden, and the more minibatches of the next window start on the old weights.
  int lag = 0;

  // Super-rounds at a window's end that its provisional step leaves out (kAmdp, kClockwork); 0: there is none. The step
  // is made from the sum over the rounds before them. Until the update the next window runs on what it gives, and not
  // on the weights of the version before. See provisional_range().
  int provisional = 0;

  int capture_every_rounds = 0;           // in-window checkpoints, where a cut is possible; 0 = never
  std::vector<std::int64_t> flush_after;  // windows at whose end an asynchronous pipeline is drained

  bool operator==(const ScheduleRequest&) const = default;
};

// A request for that many pipelines, which the kind has at that depth. Kinds with one number of them have requests that
// do not name it.
ScheduleRequest request_for(ScheduleKind kind, int depth, int pipelines);

// Refuses what contradicts itself, as make_schedule() does before all else.
Status check(const ScheduleRequest& request);

// Minibatches that a group has in a round: P in clockwork, D in all other kinds; and all groups together.
int round_size(const ScheduleRequest& request);
inline int super_round_size(const ScheduleRequest& request) { return round_size(request) * request.width; }

// How many super-rounds a provisional step may leave out. With fewer the sums would wait for ops of the next window, or
// that window for them at its very start; with more they would be wanted before the update of the window before.
struct ProvisionalRange {
  int fewest = 0;
  int most = 0;  // less than `fewest`: a window has too few super-rounds

  bool empty() const { return most < fewest; }
};

// Empty for kinds that have no provisional step. Of the request only kind, depth, pipelines, width, window and lag are
// looked at.
ProvisionalRange provisional_range(const ScheduleRequest& request);

// Minibatches in the sums that the provisional step of the request's first window is made of, with those that were in
// them before; nothing: that window has no such step, because none is asked for or too little of it is run. What comes
// after that window is not looked at. The request must have passed slices_of().
std::optional<int> provisional_minibatches(const ScheduleRequest& request);

// The last super-round in those sums, of a window that is run from its minibatch `first` on. One that is left early is
// counted as a whole: a worker that is told to stop may have begun its sums.
std::optional<int> provisional_round(const ScheduleRequest& request, int first);

// Where its kind puts the stages, or why it has no place for them.
Result<Placement> placement_of(const ScheduleRequest& request);

// The part of one window that a schedule runs: minibatches [first, end) of its M. Super-rounds are counted from
// `first`; each deals super_round_size() consecutive minibatches, round_size() to each group in turn, so that a cut
// after any super-round is a prefix of the data.
struct WindowSlice {
  std::int64_t window = 0;
  int first = 0;
  int end = 0;
  bool complete = true;  // runs to the window's end, so that its update follows

  bool operator==(const WindowSlice&) const = default;
};

// Who does what in which order: one list per worker, worker = group * depth + device. Lists are static: a worker runs
// its own from front to back, waits only for the inputs of the op at hand, and never waits to send.
struct Schedule {
  ScheduleRequest request;
  Placement placement;
  std::vector<WindowSlice> slices;  // one per window touched
  std::vector<std::vector<Op>> workers;

  int depth() const { return request.depth; }
  int group_of(int worker) const { return worker / request.depth; }
  int device_of(int worker) const { return worker % request.depth; }
  int worker_of(int group, int pipeline, int stage) const {
    return group * request.depth + placement.device_of(pipeline, stage);
  }
  int pipeline_of(const Op& op) const { return op.minibatch % placement.pipelines(); }
  const WindowSlice& slice_of(const Op& op) const { return slices[op.window - request.first_window]; }

  // Super-rounds of a slice; minibatches that a group has in one of them (fewer than round_size(), perhaps 0, in the
  // last).
  int rounds_in(const WindowSlice& slice) const;
  int minibatches_in(const WindowSlice& slice, int round, int group) const;

  // Whether the pipeline is empty when the window starts, so that the whole window runs on one version of the weights.
  bool starts_drained(std::int64_t window) const;

  // How many super-rounds of the window have a forward that may come before the update of the window before.
  int lagging_rounds(std::int64_t window) const;

  // How many super-rounds of the window must have run before it can be cut, by a stop or a capture: at least one, and
  // all with a forward before the update of the window before. What is left then runs on one version of the weights.
  int rounds_before_cut(std::int64_t window) const;

  // The last super-round whose gradients the window's provisional step has; nothing: it has none, because none is asked
  // for or too little of the window is run here. Sums are copied for it whether or not another window follows.
  std::optional<int> provisional_round(std::int64_t window) const;

  // Whether the window runs on provisional weights until the update of the window before, which this schedule makes.
  bool starts_provisional(std::int64_t window) const;

  // Whether a forward or backward does, at a worker that has so many updates.
  bool reads_provisional(const Op& op, Version in_memory) const {
    return is_compute(op) && in_memory.value < op.window && starts_provisional(op.window);
  }

  // Whether backwards of two windows meet in this chunk, which then needs two gradient buffers.
  bool two_windows_meet(int device, int stage) const;

  // Which minibatch of the training data a forward or backward is about.
  Position position_of(int worker, const Op& op) const;

  // Where training goes on when this schedule has run, and how many minibatches of that window are left.
  Position next_position() const;
  int remaining_in_window() const;
};

// Minibatches [first, end) of a window.
struct MinibatchRange {
  int first = 0;
  int end = 0;

  bool operator==(const MinibatchRange&) const = default;
};

// What a group is dealt in the first so many super-rounds of a window that is run from its start, round by round. Of
// the request only kind, depth, pipelines, width and window are looked at.
std::vector<MinibatchRange> share_of_group(const ScheduleRequest& request, int group, int rounds);

// The request's slices, or what is wrong with the request.
Result<std::vector<WindowSlice>> slices_of(const ScheduleRequest& request);

// Generates the lists of all workers. Pure: integers in, integers out.
Result<Schedule> make_schedule(const ScheduleRequest& request);

// Text form that round-trips: a line with the request, then one line per worker with its ops.
std::string to_string(const Schedule& schedule);
Result<Schedule> parse_schedule(std::string_view text);

}  // namespace everstep::scheduler
