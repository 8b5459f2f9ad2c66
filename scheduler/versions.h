#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "scheduler/schedule.h"

namespace everstep::scheduler {

// A forward and a backward of the same minibatch at the same stage that saw different weights.
struct Mismatch {
  Op backward;
  int group = 0;
  Version forward_version;
  Version backward_version;
};

// What weights and gradients do under a schedule: computed by walking the lists, not by running them, since a worker's
// versions change only at its own updates. The trainer's oracle and the checkpoint code follow this table.
struct VersionTable {
  // Parallel to Schedule::workers: the version a forward or backward reads, the one an update makes, and for the other
  // ops the version in memory.
  std::vector<std::vector<Version>> seen;

  // The same for forwards and backwards that read provisional weights, made from that version, in its stead.
  std::vector<std::vector<bool>> provisional;

  std::vector<Mismatch> mismatches;

  // Minibatch gradients that reached the owner in time: per (window, stage) for updates, per (window, round, stage) for
  // captures and for copies for the provisional step. Gradients are kept in two buffers per chunk, by the parity of
  // their window. Where backwards are split a gradient counts from its backward on: its other half is done before the
  // buffer is looked at.
  std::map<std::tuple<std::int64_t, int>, int> applied;
  std::map<std::tuple<std::int64_t, int, int>, int> captured;
  std::map<std::tuple<std::int64_t, int, int>, int> provisional_sums;

  // Chunks (worker, stage) that need both buffers at once.
  std::vector<std::tuple<int, int>> doubly_buffered;
};

VersionTable trace_versions(const Schedule& schedule);

}  // namespace everstep::scheduler
