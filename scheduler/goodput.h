#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "scheduler/membership_trace.h"

namespace everstep::scheduler {

// How fast some number of workers trains, and under which plan.
struct PlanRate {
  double minibatches_per_second = 0;  // 0: no plan for so few
  std::string label;
};

// Asked once for each number of workers in the trace.
using RateOfWorkers = std::function<PlanRate(int workers)>;

struct GoodputOptions {
  std::int64_t cost_per_change_ms = 0;
  int min_workers = 1;  // with fewer, nothing runs and nothing counts as lost
  int samples = 0;      // points of the series
};

// What one plan label stood for in the time that the trace covers, stalls included.
struct PlanShare {
  std::string label;
  double seconds = 0;
  double share = 0;  // of the whole time

  bool operator==(const PlanShare&) const = default;
};

// One of equal slices of the time: means over it, and the goodput from the start to its end.
struct GoodputSample {
  double end_seconds = 0;
  double workers = 0;
  double ideal_rate = 0;
  double actual_rate = 0;
  double goodput = 1;

  bool operator==(const GoodputSample&) const = default;
};

struct Goodput {
  double ideal_minibatches = 0;
  double actual_minibatches = 0;
  double stalled_seconds = 0;  // in which the workers there were could have trained
  double idle_seconds = 0;     // with too few workers for any plan
  int changes = 0;
  std::vector<PlanShare> plans;  // the longest first; equal ones by label
  std::vector<GoodputSample> series;

  // The share of the ideal that was reached; 1 where nothing was possible.
  double fraction() const { return ideal_minibatches > 0 ? actual_minibatches / ideal_minibatches : 1; }
};

// What a job would have done on the workers of a trace. Ideal: at each instant the rate of the workers that are there.
// Actual: the same, but after each change of membership nothing is done for the cost of a change, and a change in that
// time starts it anew; no work is redone. Every change costs, also one that only adds or takes a spare: the estimate is
// on the safe side. The start is no change.
Goodput predict_goodput(const MembershipTrace& trace, const GoodputOptions& options,
                        const RateOfWorkers& rate_of_workers);

}  // namespace everstep::scheduler
