#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::scheduler {

// From `time_ms` on there are `workers`. An instant at which as many left as came is a point too: the members changed.
struct MembershipPoint {
  std::int64_t time_ms = 0;
  int workers = 0;

  bool operator==(const MembershipPoint&) const = default;
};

// Who was there when, over [0, duration_ms). The first point is at 0, the times increase, and `duration_ms` is greater
// than the last: what the file's last instant changes has no effect in its time and is left out.
struct MembershipTrace {
  std::vector<MembershipPoint> points;
  std::int64_t duration_ms = 0;
  int overruled_lines = 0;  // counts that a later line replaced, see below

  // Instants at which the members changed; the start is not one.
  int changes() const { return static_cast<int>(points.size()) - 1; }
  double mean_workers() const;
  int max_workers() const;

  bool operator==(const MembershipTrace&) const = default;
};

inline constexpr std::size_t kMaxTraceBytes = std::size_t{16} << 20;
inline constexpr int kMaxTraceWorkers = 1'000'000;

// Reads a membership trace in one of two formats, which the first line of data decides:
//
//   milliseconds,add|remove,node          0,add,node1          each node is added before it is removed, and once only
//   date, time, number of workers         2021-12-11, 11:11:30, 55
//
// Blank lines, lines that start with '#', blanks around fields and CRLF are allowed. Changes at one instant are one
// change. Times do not decrease, with one exception: probes that wrote counts overlap by up to two minutes in public
// traces, and then the later line holds for its time and all that follows. The error names the line and the reason.
Result<MembershipTrace> parse_membership_trace(std::string_view text);

// One line of a trace of the first format.
struct NodeChange {
  std::int64_t time_ms = 0;
  bool is_added = false;  // else removed
  std::string node;

  bool operator==(const NodeChange&) const = default;
};

// The same, line by line, for who wants to know which nodes came and went. Traces of the second format are refused:
// they do not say.
Result<std::vector<NodeChange>> parse_node_changes(std::string_view text);

}  // namespace everstep::scheduler
