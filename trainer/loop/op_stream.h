#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "scheduler/schedule.h"

namespace everstep::trainer {

// The ops that one worker runs from one drain to the next, however many windows lie between: a schedule repeats itself
// from one update to the next, so three windows of it tell the rest. The list is the one that make_schedule would give
// for that many windows, without its memory.
class OpStream {
 public:
  // `request.windows` is how many windows to run before the drain. The request must be of a kind that can be trained
  // and end with a window.
  static Result<OpStream> make(scheduler::ScheduleRequest request, int worker);

  std::int64_t size() const;
  scheduler::Op at(std::int64_t index) const;

  // Ends the stream after `window` instead. Its ops up to the update before that window stay as they were.
  void end_after(std::int64_t window);

  // Ends the stream after a round of `window` that is not its last, instead: from here on later rounds of it, its
  // reduces and its update are left out. Nothing after that round may have been run yet.
  void end_after_round(std::int64_t window, int round);

  // Whether an op is not to be run because the stream ends inside its window.
  bool leaves_out(const scheduler::Op& op) const;

  std::int64_t first_window() const { return pattern_.request.first_window; }
  int first_minibatch_of(std::int64_t window) const {
    return window == first_window() ? pattern_.request.first_minibatch : 0;
  }
  std::int64_t last_window() const { return pattern_.request.first_window + windows_ - 1; }

  // Which minibatch of the training data a forward or backward is about.
  Position position_of(const scheduler::Op& op) const;

  // The windows at the start of the stream as a schedule: who is where.
  const scheduler::Schedule& pattern() const { return pattern_; }

 private:
  OpStream(scheduler::Schedule pattern, int worker, std::int64_t windows);

  const std::vector<scheduler::Op>& list() const { return pattern_.workers[worker_]; }
  std::int64_t repeats() const { return windows_ - pattern_.request.windows; }

  scheduler::Schedule pattern_;
  int worker_;
  std::int64_t windows_;
  // Ops (repeat_begin_, repeat_end_] of the pattern run from its first update to its second: the part that repeats.
  std::int64_t repeat_begin_ = 0;
  std::int64_t repeat_end_ = 0;
  std::optional<int> last_round_;  // of the last window
};

}  // namespace everstep::trainer
