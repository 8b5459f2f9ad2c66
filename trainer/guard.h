#pragma once

#include "trainer/state_copies.h"
#include "trainer/train_loop.h"
#include "trainer/transport.h"

namespace everstep::trainer {

// A spare's part in a run of train(): keeps copies of the stages that `options.guards` gives to
// `transport.worker()`, which stands behind the workers of the plan, until the run ends in order. The options are those
// that the workers have. Nobody tells it the past: its copies have no history.
Status guard(const TrainOptions& options, Transport& transport, StateCopies& copies);

}  // namespace everstep::trainer
