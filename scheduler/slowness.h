#pragma once

#include <cmath>
#include <vector>

#include "base/tick.h"

namespace everstep::scheduler {

// How many times as long as usual each device of a group computes: 1 is usual, and empty means that all are. Groups are
// cut alike and meet at every update, so a device is as slow as the slowest worker that sits there in any group.
using Slowness = std::vector<double>;

inline Tick slowed(Tick time, double slowness) {
  return static_cast<Tick>(std::llround(static_cast<double>(time) * slowness));
}

inline Tick slowed(Tick time, const Slowness& slowness, int device) {
  return slowness.empty() ? time : slowed(time, slowness[device]);
}

}  // namespace everstep::scheduler
