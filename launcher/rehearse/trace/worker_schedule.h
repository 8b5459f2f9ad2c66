#pragma once

#include <cstdint>
#include <vector>

#include "base/tick.h"
#include "launcher/rehearse/trace/trace_slice.h"
#include "scheduler/membership_trace.h"

namespace everstep::launcher {

// What an instant of a slice does to the workers: first some are killed, then others start.
struct WorkerChange {
  std::int64_t time_ms = 0;
  std::vector<int> killed;
  std::vector<int> started;

  bool operator==(const WorkerChange&) const = default;
};

// Which workers there are when, in the trace's own time. Workers are numbered as they start, from 0.
struct WorkerSchedule {
  std::int64_t duration_ms = 0;
  int first_workers = 0;
  std::vector<WorkerChange> changes;

  int killed() const;
  int losses() const;  // changes that kill
  int started() const;
  int final_workers() const;

  bool operator==(const WorkerSchedule&) const = default;
};

// With at most `most_workers` (N) nodes at once each node is a worker. With more of them (K), N workers stand for K
// nodes:
//
// - an instant that takes r nodes kills ceil(r N / K) workers at that instant: at least one, so that no loss goes
//   unseen and no simultaneous loss becomes a smaller share of the job than it was;
// - an instant that gives a nodes starts ceil(a N / K) workers;
// - but the number of workers stays within one of n N / K while there are n nodes: where kills took more, others start
//   at the same instant; where starts would give more, they do not happen. Without nodes there are no workers.
//
// A worker is killed for a node of the same rank by age: the oldest worker, which often leads, goes when the oldest
// node does.
WorkerSchedule map_to_workers(const TraceSlice& slice, int most_workers);

// The same as numbers, for `predict_goodput`.
scheduler::MembershipTrace membership_of(const WorkerSchedule& schedule);

enum class ActionKind : std::uint8_t { kAskToLeave, kKill, kStart };

struct WorkerAction {
  Tick at = 0;  // of real time, since the rehearsal began
  ActionKind kind = ActionKind::kStart;
  int worker = 0;

  bool operator==(const WorkerAction&) const = default;
};

// The schedule `speedup` times as fast, in order of time. With a notice (of the trace's time; 0: none) a worker is
// asked to leave that long before it is killed, or as soon as it has started.
std::vector<WorkerAction> actions_of(const WorkerSchedule& schedule, double speedup, double notice_seconds);

}  // namespace everstep::launcher
