#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "storage/hashing.h"

namespace everstep::storage {

// What became of a range of minibatches of one window.
struct LedgerEntry {
  std::int64_t window = 0;
  int first = 0;  // minibatches [first, end) of the window
  int end = 0;
  Generation generation;
  std::string plan;             // "amdp D=4 P=2 W=1 M=16 preload=2 cuts=0,2,4,6,8"
  bool flushed = false;         // the window began on a drained pipeline
  bool skipped = false;         // its gradient was not finite, or exploded
  std::vector<double> losses;   // one per minibatch
  std::vector<int> left_out{};  // minibatches of [first, end) that were not run, ascending: consumed, with a loss of 0
  double norm_limit = 0;        // skipped because its gradient's norm was above this; 0: because it was not finite
  bool provisional = false;     // until the update before, the window ran on provisional weights

  bool operator==(const LedgerEntry&) const = default;
};

// All that happened between one checkpoint and its parent. Segments link backwards by their digests and are never
// deleted, so the whole history can be audited from the newest manifest.
struct LedgerSegment {
  std::uint64_t lineage = 0;
  std::optional<Digest> before;
  Position begin;
  Position end;
  std::vector<LedgerEntry> entries;

  bool operator==(const LedgerSegment&) const = default;
};

// Refuses gaps, overlaps and entries outside [begin, end). `window` is M.
Status check(const LedgerSegment& segment, int window);

}  // namespace everstep::storage
