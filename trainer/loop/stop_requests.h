#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "trainer/update/window_stop.h"

namespace everstep::trainer {

// How train() learns that it is to stop early. Asked by the training thread only; answers may come from other threads.
//
// At a window's end: what one worker wishes at an update exchange, all do at the end of the window that is certain to
// run by then (synchronous: the one just updated; asynchronous: the next).
//
// Inside a window (super-rounds are numbered as in trainer/recovery/super_rounds.h): somebody outside asks every worker
// which super-round it started last, and tells all of them to end after the highest of the answers + 1. A worker that
// was asked goes at most one super-round further until it is told. So no worker has started a super-round after the
// last one.
class StopRequests {
 public:
  virtual ~StopRequests() = default;

  virtual WindowStop at_window_end() = 0;

  // Asked before the first op of each super-round, in rising order (one in which this worker has nothing to do may be
  // left out). True: it counts as started from now on. False: it comes after the last one, or it is not known in time
  // whether it does. Always true while nobody asked for a promise.
  virtual bool start_round(std::int64_t round, std::chrono::milliseconds wait) = 0;

  // The super-round up to which everything is certain to run, whatever is asked from now on: before a promise the one
  // after what was started, after it the one after what was promised. Nothing: no stop inside a window can come.
  virtual std::optional<std::int64_t> certain_round() = 0;

  // The last super-round to run, once it is known. Never taken back.
  virtual std::optional<std::int64_t> last_round() = 0;
};

}  // namespace everstep::trainer
