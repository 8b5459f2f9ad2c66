#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "scheduler/plan.h"

namespace everstep::trainer {

// How many updates behind its window's own version the weights are that the passes of a minibatch use.
struct VersionLags {
  int forward = 0;
  int backward = 0;

  bool operator==(const VersionLags&) const = default;
};

// What besides the plan decides which weights the minibatches of a window meet.
struct WindowStart {
  bool drained = true;   // nothing was in flight
  int first = 0;         // minibatch of the window with which the plan began on it
  int first_before = 0;  // the same of the window before; if `drained`, 0

  auto operator<=>(const WindowStart&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The version table of amdp.md, by minibatch and block, taken from the schedule itself.
class WindowVersions {
 public:
  // kInvalidArgument if there is no schedule for such a plan. `stash`: every backward uses the weights of its forward.
  static Result<WindowVersions> of(const scheduler::Plan& plan, const WindowStart& start, bool stash);

  // Of a minibatch not before `start.first`.
  const VersionLags& at(int minibatch, int block) const;

 private:
  WindowVersions(int first, int window, scheduler::Cuts cuts);

  int first_;
  scheduler::Cuts cuts_;
  std::vector<std::vector<VersionLags>> lags_;  // by minibatch after the first, then stage
};

}  // namespace everstep::trainer
