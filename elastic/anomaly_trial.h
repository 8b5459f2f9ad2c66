#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace everstep::elastic {

// A window whose gradient nobody applied because it is not finite, or explodes: what every worker tells that stopped
// because of it (trainer/anomaly.h), with workers by their ids.
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

// What is done about it.
struct TrialStep {
  AnomalyTrial trial;
  std::optional<Position> left_out{};  // it was the data: this minibatch is not trained on any more
  std::optional<WorkerId> guilty{};    // what this worker computes cannot be trusted
  std::string what;                    // for people
};

// What follows from an anomaly, given what was tried before (of this window or another).
//  * the first of its window: it is run again as it was
//  * the same minibatch again: the data is to blame
//  * that minibatch passed and a later one did not, on the same bits: whoever was suspected first is to blame
//  * after two failures that can be compared (both seen, or neither), or after three, it is skipped if it fails again
TrialStep next_step(const std::optional<AnomalyTrial>& before, const AnomalyReport& happened);

// How the next generation sees a trial whose window has not passed: nothing if the base lies behind it.
// `same_bits`: the window begins on the bits and under the plan, seat by seat, that it failed with last.
std::optional<AnomalyTrial> carried_on(AnomalyTrial trial, Position base, int window, bool same_bits);

}  // namespace everstep::elastic
