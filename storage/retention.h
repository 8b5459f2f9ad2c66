#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "storage/manifest.h"

namespace everstep::storage {

struct RetentionOptions {
  int keep_last = 3;           // at least 2: one may turn out to be damaged
  std::int64_t keep_every = 0;  // also every checkpoint at a multiple of so many updates; 0: none
  int keep_best = 0;            // also so many with the lowest validation loss

  bool operator==(const RetentionOptions&) const = default;
};

// What retention looks at, of one committed checkpoint.
struct RetentionCandidate {
  std::int64_t sequence = 0;
  CheckpointName name;
  Version version;
  std::optional<double> validation_loss;
  bool pinned = false;

  bool operator==(const RetentionCandidate&) const = default;
};

// Which of them to keep, as indices ascending. The newest (highest sequence) is always kept.
std::vector<std::size_t> checkpoints_to_keep(const std::vector<RetentionCandidate>& candidates,
                                             const RetentionOptions& options);

}  // namespace everstep::storage
