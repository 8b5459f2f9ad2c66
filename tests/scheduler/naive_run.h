#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "scheduler/execution.h"
#include "scheduler/schedule.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {

// What a run of a schedule showed. Problems say which rule of the design it breaks; the rest describes the run.
struct NaiveReport {
  std::vector<std::string> problems;
  std::vector<std::vector<OpSpan>> spans;                             // parallel to the lists, shorter if it hung
  std::vector<std::vector<std::int64_t>> seen;                        // versions, as in VersionTable
  std::set<std::tuple<int, std::int64_t, int, int, int>> mismatched;  // group, window, round, minibatch, stage
  std::map<std::tuple<std::int64_t, int>, int> applied;               // as in VersionTable
  std::map<std::tuple<std::int64_t, int, int>, int> captured;
  std::set<std::tuple<int, int>> doubly_buffered;  // worker, stage
  std::map<int, int> peak_on_worker;               // minibatches in flight
  std::map<int, int> peak_at_first_stage;          // per worker

  bool harmless() const { return problems.empty(); }
};

// A second implementation of validate, execute and trace_versions at once, as dumb as possible: workers take turns, one
// op each, tokens lie in maps, gradients are sets of positions, links and collectives are lists compared at the end.
// Slow, and sharing no code with the product beyond the types.
NaiveReport run_naively(const Schedule& schedule, const SeededCosts& costs);

}  // namespace everstep::scheduler
