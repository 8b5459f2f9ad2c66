#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "storage/manifest.h"

namespace everstep::storage {

struct RetentionOptions {
  int keep_last = 3;            // at least 2: one may turn out to be damaged; also of those the newest descends from
  std::int64_t keep_every = 0;  // also one checkpoint per multiple of so many updates, the first cut there; 0: none
  int keep_best = 0;            // also so many with the lowest validation loss; of equal ones those that came first

  bool operator==(const RetentionOptions&) const = default;
};

// What retention looks at, of one committed checkpoint.
struct RetentionCandidate {
  std::int64_t sequence = 0;
  std::int64_t parent = 0;  // sequence of what it descends from; 0: that is not there
  CheckpointName name;
  Version version;
  std::optional<double> validation_loss;
  bool pinned = false;
  bool damaged = false;  // is kept only if it is pinned or the newest

  bool operator==(const RetentionCandidate&) const = default;
};

// Which of them to keep, as indices ascending. The newest (highest sequence) is always kept.
std::vector<std::size_t> checkpoints_to_keep(const std::vector<RetentionCandidate>& candidates,
                                             const RetentionOptions& options);

}  // namespace everstep::storage
