#pragma once

#include <cstdint>
#include <optional>

#include "base/ids.h"

namespace everstep::elastic {

// A window whose gradient nobody applied because it is not finite, or explodes: what every worker tells that stopped
// because of it (trainer/update/anomaly.h), with workers by their ids.
struct AnomalyReport {
  std::int64_t window = 0;
  std::optional<Position> minibatch{};  // whose numbers ceased to be finite; nothing: nobody saw it happen
  std::optional<WorkerId> suspect{};    // where they did
  bool repeats = false;                 // on the same bits, from the window's beginning, they must do so again
  double norm_limit = 0;                // above which the norm is; 0: it is not finite

  bool operator==(const AnomalyReport&) const = default;
};

// Such a window while it is run again. Part of the generation that does so.
struct AnomalyTrial {
  AnomalyReport report;   // the last one
  int failures = 1;       // times that the window was run and not applied
  bool convicts = false;  // if it passes now, the suspect is at fault: nothing else has changed
  bool skips = false;     // it is skipped if it happens again

  bool operator==(const AnomalyTrial&) const = default;
};

}  // namespace everstep::elastic
