#pragma once

#include <vector>

#include "scheduler/schedule.h"

namespace everstep::scheduler {

// Puts the reduces and captures of one device into its list of forwards, backwards and updates.
//
// The rule, which is the same on every worker: collectives follow each other window by window, round by round, and
// inside that by stage, descending; each starts as soon as its chunk has run its last backward up to that point and its
// predecessor has started. So all members of a mirror group start them in one order, also when partial rounds let a low
// stage finish first.
//
// Where a device does not run its backwards in the order of their rounds (clockwork with 1 < P < D/2), a capture cannot
// wait for its turn: its chunk may run a backward of the next round meanwhile. There a capture stands behind its
// chunk's own last backward. It copies the gradient at once, and only its reduce waits until it is its turn.
//
// So does a copy for the provisional step, in all kinds: its sums have links of their own.
std::vector<Op> with_collectives(const Schedule& schedule, int device, const std::vector<Op>& ops);

}  // namespace everstep::scheduler
