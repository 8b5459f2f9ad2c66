#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "elastic/anomaly_records.h"

namespace everstep::elastic {

// What is done about an anomaly.
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

// How the next generation sees a trial whose window has not passed: nothing if the origin lies behind it.
// `same_bits`: the window begins on the bits and under the plan, seat by seat, that it failed with last.
std::optional<AnomalyTrial> carried_on(AnomalyTrial trial, Position origin, int window, bool same_bits);

}  // namespace everstep::elastic
