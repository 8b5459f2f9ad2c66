#pragma once

#include "base/result.h"
#include "scheduler/schedule.h"

namespace everstep::scheduler {

// Minibatches between forward and backward that a schedule may hold. Activation memory is planned by these bounds.
struct InFlightLimits {
  int per_first_stage = 0;
  int per_device = 0;
};

// The bounds that the schedule's kind promises.
InFlightLimits in_flight_limits(const Schedule& schedule);

// Proves that a schedule may be run, or names the first op that is wrong:
//  - complete: every minibatch of every slice has one forward and one backward per stage, on the worker that holds it;
//    reduces, captures and updates stand where they must, and nothing else stands anywhere;
//  - free of deadlock, whatever ops and messages cost (the op that would hang is named, with what it waits for);
//  - in order: on every directed link tensors are consumed in the order in which they are sent, and all members of a
//    mirror group (over all groups) start their collectives in one order;
//  - bounded: in-flight minibatches stay within in_flight_limits;
//  - in time: ops of clockwork stand in the order of their slots, and each update in its place (see clockwork.h);
//  - current: only the first rounds of an asynchronous window may read weights of the version before, so at most one
//    version lies between forward and backward; each gradient enters the update of its own window exactly once, with as
//    many gradient buffers as the chunk has; captures hold exactly the rounds they name (see versions.h);
//  - provisional where it is asked for: the copies for that step hold exactly its rounds, and stand behind the update
//  of
//    the window before and before the first op of the next one.
Status validate(const Schedule& schedule);

}  // namespace everstep::scheduler
