#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/membership_trace.h"

namespace everstep::launcher {

// What one instant of a slice changes. A node that came and went at once is in neither list.
struct NodeInstant {
  std::int64_t time_ms = 0;  // since the slice began, above 0
  std::vector<std::string> removed;
  std::vector<std::string> added;

  bool operator==(const NodeInstant&) const = default;
};

// Some time of a trace, [from_ms, from_ms + duration_ms) since the trace's first line.
struct TraceSlice {
  std::int64_t from_ms = 0;
  std::int64_t duration_ms = 0;
  std::vector<std::string> nodes;  // there when it begins, the oldest first
  std::vector<NodeInstant> instants;

  int most_nodes() const;  // at once
  int removed() const;     // nodes
  int removals() const;    // instants that take nodes away
  int added() const;       // nodes

  bool operator==(const TraceSlice&) const = default;
};

using NodeTrace = std::vector<scheduler::NodeChange>;

std::int64_t duration_of(const NodeTrace& trace);

// kInvalidArgument: the trace does not cover that time, or has no node when it begins.
Result<TraceSlice> slice_of(const NodeTrace& trace, std::int64_t from_ms, std::int64_t duration_ms);

// Of all slices of that length that begin at a whole minute of the trace with some node there: the one with the most
// instants that change something, of equal ones that with the most nodes taken away, then the first. kInvalidArgument:
// there is none.
Result<TraceSlice> busiest_slice(const NodeTrace& trace, std::int64_t duration_ms);

}  // namespace everstep::launcher
