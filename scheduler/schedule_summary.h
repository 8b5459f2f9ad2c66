#pragma once

#include <vector>

#include "scheduler/schedule.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// The share of the run's time in which the average worker computes; filling and draining count as waiting.
double busy_share(const Timeline& timeline);

// The most minibatches that were between forward and backward at once.
struct InFlightPeak {
  int per_first_stage = 0;
  int per_device = 0;  // counted once per stage

  bool operator==(const InFlightPeak&) const = default;
};

InFlightPeak in_flight_peak(const Schedule& schedule);

// Which of a worker's ops read provisional weights; parallel to its list.
std::vector<bool> provisional_reads(const Schedule& schedule, int worker);

// Per slice: minibatches (of all groups) that met two weight versions, at any stage.
std::vector<int> mismatched_minibatches(const Schedule& schedule);

}  // namespace everstep::scheduler
