#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/naive_clock.h"
#include "tests/scheduler/support.h"

// Clockwork at every depth up to 16 with every number of pipelines and every window up to four times the depth, and at
// some depths up to 64.
namespace everstep::scheduler {
namespace {

ScheduleRequest shape(ScheduleKind kind, int depth, int pipelines, int width, int window, int windows) {
  ScheduleRequest request = request_of(kind, depth, width, window, windows);
  request.pipelines = pipelines;
  return request;
}

// 0, 1, a stage's way through the pipeline and the largest that there is, as far as they exist.
std::vector<int> lags(const ScheduleRequest& request) {
  const int largest = Clock(request.depth, request.pipelines).largest_lag(request.window, request.width);
  std::set<int> all{0, 1, largest};
  if (request.depth <= largest) all.insert(request.depth);
  return {all.begin(), all.end()};
}

// When the ops of a minibatch are due, counted from the start of its window, and the update of the window before.
struct Times {
  explicit Times(const ScheduleRequest& request)
      : depth(request.depth), pipelines(request.pipelines), phases(naive_phases(request)) {
    update = *std::max_element(phases.begin(), phases.end()) - 2 * pipelines + 2 * depth - 1 + request.lag;
  }
  int forward(const Op& op) const { return phases[op.minibatch] + 2 * pipelines * op.round + op.stage; }
  int backward(const Op& op) const { return forward(op) + 2 * (depth - op.stage) - 1; }

  int depth;
  int pipelines;
  std::vector<int> phases;
  int update;
};

// Each op reads the version that its slot says, and chunks have two buffers where their slots say so.
std::string version_flaw_of(const Schedule& schedule) {
  const ScheduleRequest& request = schedule.request;
  const VersionTable table = trace_versions(schedule);
  const Times times(request);
  std::set<std::tuple<int, int>> meet;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      if (!is_compute(op)) continue;
      const bool may_lag = request.kind == ScheduleKind::kClockwork && op.window > request.first_window;
      const int slot = op.kind == OpKind::kForward ? times.forward(op) : times.backward(op);
      const bool lags = may_lag && slot <= times.update;
      if (table.seen[worker][i].value != op.window - (lags ? 1 : 0)) return to_string(op) + " reads the wrong version";
      if (lags && op.round >= schedule.lagging_rounds(op.window)) return to_string(op) + " is in no lagging round";
      if (lags && op.kind == OpKind::kBackward) meet.insert({worker, op.stage});
    }
  }
  const std::set<std::tuple<int, int>> doubly(table.doubly_buffered.begin(), table.doubly_buffered.end());
  if (!std::includes(meet.begin(), meet.end(), doubly.begin(), doubly.end())) return "a buffer too many";
  // A first window of which little is left has no gradients in some chunks.
  if (request.first_minibatch == 0 && doubly != meet) return "a buffer is missing";
  for (const Mismatch& mismatch : table.mismatches) {
    if (mismatch.forward_version.next() != mismatch.backward_version) return "a mismatch of more than one version";
  }
  for (const auto& [key, count] : table.applied) {
    const WindowSlice& slice = schedule.slices[std::get<0>(key) - request.first_window];
    if (count != slice.end - slice.first) return "a sum is not M";
  }
  return "";
}

// Once the pipelines are full, a device runs a forward, a backward, a forward, …
std::string alternation_flaw_of(const Schedule& schedule) {
  const ScheduleRequest& request = schedule.request;
  const bool stays_full = request.kind == ScheduleKind::kClockwork && request.flush_after.empty() &&
                          request.window % super_round_size(request) == 0 && request.windows > 2;
  if (!stays_full) return "";
  for (const std::vector<Op>& ops : schedule.workers) {
    const auto begin = std::find(ops.begin(), ops.end(), update_of(request.first_window));
    const auto end = std::find(begin, ops.end(), update_of(request.first_window + 1));
    const Op* before = nullptr;
    for (auto op = begin; op != end; ++op) {
      if (!is_compute(*op)) continue;
      if (before != nullptr && before->kind == op->kind) return to_string(*op) + " follows one of its kind";
      before = &*op;
    }
  }
  return "";
}

std::string flaw_in_clockwork(const ScheduleRequest& request) {
  const auto schedule = make_schedule(request);
  if (!schedule) return schedule.error().line();
  if (const Status valid = validate(*schedule); !valid) return valid.error().line();
  if (std::string flaw = alternation_flaw_of(*schedule); !flaw.empty()) return flaw;
  return version_flaw_of(*schedule);
}

TEST(ClockworkInvariants, HoldForEveryShapeAndWindowUpToFourTimesTheDepth) {
  for (int depth = 1; depth <= 16; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      for (int window = depth; window <= 4 * depth; ++window) {
        ScheduleRequest request = shape(ScheduleKind::kClockwork, depth, pipelines, 1, window, 3);
        for (const int lag : lags(request)) {
          request.lag = lag;
          ASSERT_EQ(flaw_in_clockwork(request), "") << describe(request);
        }
        request.lag = 0;
        request.kind = ScheduleKind::kClockworkSync;
        request.windows = 1;
        ASSERT_EQ(flaw_in_clockwork(request), "") << describe(request);
      }
    }
  }
}

TEST(ClockworkInvariants, HoldForSeveralGroups) {
  for (int depth = 1; depth <= 12; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      for (const int width : {2, 3}) {
        for (int extra = 0; extra <= 2 * pipelines * width; ++extra) {
          ScheduleRequest request = shape(ScheduleKind::kClockwork, depth, pipelines, width, depth * width + extra, 3);
          request.lag = extra % 2;
          ASSERT_EQ(flaw_in_clockwork(request), "") << describe(request);
        }
      }
    }
  }
}

TEST(ClockworkInvariants, HoldForEveryStartStopAndCapture) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      for (const int window : {depth, 2 * depth + 1}) {
        for (int first = 0; first <= window; ++first) {
          for (int stop = 0; stop <= window / pipelines + 1; ++stop) {
            ScheduleRequest request = shape(ScheduleKind::kClockwork, depth, pipelines, 1, window, 2);
            request.first_window = first;
            request.first_minibatch = first;
            request.lag = (first + stop) % 2;
            request.capture_every_rounds = (first + stop) % 4;
            if (stop > 0) request.stop_after_rounds = stop;
            ASSERT_EQ(flaw_in_clockwork(request), "") << describe(request);
          }
        }
      }
    }
  }
}

TEST(ClockworkInvariants, HoldAtSomeDepthsUpTo64) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomStream random(seed, 18);
    std::uint64_t draws = 0;
    const auto below = [&](int bound) {
      return static_cast<int>(random.below(draws++, static_cast<std::uint64_t>(bound)));
    };
    const int depth = 17 + below(48);
    const std::vector<int> choices = clockwork_pipelines(depth);
    const int pipelines = choices[below(static_cast<int>(choices.size()))];
    const int width = 1 + below(2);
    ScheduleRequest request =
        shape(ScheduleKind::kClockwork, depth, pipelines, width, depth * width + below(depth * width), 3);
    const std::vector<int> possible = lags(request);
    request.lag = possible[below(static_cast<int>(possible.size()))];
    request.capture_every_rounds = below(3);
    ASSERT_EQ(flaw_in_clockwork(request), "") << describe(request) << " seed=" << seed;
  }
}

}  // namespace
}  // namespace everstep::scheduler
