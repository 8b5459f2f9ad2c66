#pragma once

#include <string>
#include <vector>

#include "scheduler/schedule.h"

namespace everstep::scheduler {

// One schedule on a model of equal stages with forward = 1 and backward = 2 per stage, free links and free updates.
// Half of a split backward is for the weights.
struct ComparisonCell {
  int depth = 1;
  int rounds = 1;   // T: the window is depth * rounds minibatches
  double busy = 0;  // in steady state
  // Most minibatches whose activations a device holds, each counted by its share of 1/depth of the model.
  double activations = 0;

  bool operator==(const ComparisonCell&) const = default;
};

struct ComparisonRow {
  ScheduleKind kind = ScheduleKind::kAmdp;
  std::vector<ComparisonCell> cells;  // depths outside, rounds inside

  bool operator==(const ComparisonRow&) const = default;
};

// All kinds over these depths and rounds, each doing the same work: interleaved schedules have two chunks of half a
// stage per device. The depths must suit every kind (4, 8, 12, …).
std::vector<ComparisonRow> compare_schedules(const std::vector<int>& depths, const std::vector<int>& rounds);

// The rows as two Markdown tables, for docs/schedules.md. Ends with a newline.
std::string to_markdown(const std::vector<ComparisonRow>& rows);

}  // namespace everstep::scheduler
