#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "scheduler/clockwork.h"
#include "scheduler/schedule.h"
#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/support.h"

// Stopping inside a window, and going on under another plan.
namespace everstep::scheduler {
namespace {

// What a worker that stops after so many rounds of the last window would still run of its list. The capture at the stop
// has no counterpart in a list that goes on, so captures from there on are left out on both sides.
std::vector<Op> up_to_the_stop(std::vector<Op> ops, const ScheduleRequest& request, int rounds) {
  const std::int64_t last = request.first_window + request.windows - 1;
  std::erase_if(ops, [&](const Op& op) {
    if (op.window != last) return false;
    if (is_compute(op)) return op.round >= rounds;
    return op.kind != OpKind::kCapture || op.round >= rounds - 1;
  });
  return ops;
}

// Compares the list made for each stop with the one that a worker has in hand when it is told to stop.
void expect_drained_lists_are_filtered_ones(ScheduleKind kind, int depth, int width, int pipelines = 0) {
  const int super_round = depth * width;
  for (const int window : {2 * super_round, 2 * super_round + 1, 4 * super_round - 1}) {
    for (const int first : {0, 1, super_round}) {
      ScheduleRequest request = request_of(kind, depth, width, window, 1 + first % 2);
      request.first_minibatch = first;
      request.pipelines = pipelines;
      request.capture_every_rounds = first % 3;
      const Schedule undrained = make_schedule(request).value();
      for (int stop = 1; stop <= 4; ++stop) {
        request.stop_after_rounds = stop;
        const Schedule drained = make_schedule(request).value();
        const bool complete = drained.slices.back().complete;
        for (int worker = 0; worker < super_round; ++worker) {
          const int rounds = complete ? window : drained.rounds_in(drained.slices.back());
          ASSERT_EQ(up_to_the_stop(drained.workers[worker], request, rounds),
                    up_to_the_stop(undrained.workers[worker], request, rounds))
              << describe(request) << " worker " << worker;
        }
      }
    }
  }
}

TEST(Drain, RunsTheUndrainedListWithoutTheLaterRounds) {
  for (const int depth : {1, 2, 3, 4, 5, 6, 8, 12, 16}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      if (kind == ScheduleKind::kTwoDirections) continue;
      for (int width = 1; width <= 2; ++width) expect_drained_lists_are_filtered_ones(kind, depth, width);
    }
  }
}

TEST(Drain, RunsTheUndrainedListWithoutTheLaterRoundsInTwoDirections) {
  for (int depth = 2; depth <= 12; depth += 2) {
    for (int width = 1; width <= 2; ++width) {
      expect_drained_lists_are_filtered_ones(ScheduleKind::kTwoDirections, depth, width);
      if (HasFailure()) return;
    }
  }
}

TEST(Drain, RunsTheUndrainedListOfClockworkWhateverItsPipelines) {
  for (int depth = 1; depth <= 12; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      for (int width = 1; width <= 2; ++width) {
        expect_drained_lists_are_filtered_ones(ScheduleKind::kClockwork, depth, width, pipelines);
        if (HasFailure()) return;
      }
    }
  }
}

// A minibatch that began on the old weights would be begun again on the new ones.
TEST(Drain, OfClockworkWaitsForAllThatBeganBeforeTheUpdate) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, 4 * depth, 2);
      request.pipelines = pipelines;
      request.stop_after_rounds = 1;
      const Schedule schedule = make_schedule(request).value();
      EXPECT_EQ(schedule.rounds_in(schedule.slices.back()), schedule.rounds_before_cut(1)) << describe(request);
      request.stop_after_rounds.reset();
      const Schedule whole = make_schedule(request).value();
      for (const std::vector<Op>& ops : whole.workers) {
        const auto update = std::find(ops.begin(), ops.end(), update_of(0));
        for (auto op = ops.begin(); op != update; ++op) {
          EXPECT_TRUE(op->window == 0 || op->round < schedule.rounds_before_cut(1)) << describe(request);
        }
      }
    }
  }
}

TEST(Drain, CapturesEveryChunkAfterTheLastRoundAndAppliesNothing) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 2, 24, 1);
  request.first_window = 6;
  request.stop_after_rounds = 2;
  const Schedule schedule = make_schedule(request).value();
  for (const std::vector<Op>& ops : schedule.workers) {
    EXPECT_EQ(std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kUpdate; }), 0);
    EXPECT_EQ(std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kStartReduce; }), 0);
    EXPECT_EQ(std::count_if(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::kCapture; }), 2);
    EXPECT_TRUE(ops.back().kind == OpKind::kCapture && ops.back().round == 1);
  }
  const VersionTable table = trace_versions(schedule);
  for (int stage = 0; stage < 4; ++stage) EXPECT_EQ(table.captured.at({6, 1, stage}), 16);
  EXPECT_TRUE(table.applied.empty());
}

TEST(Drain, SaysWhereToGoOnAndWhatIsLeft) {
  for (int depth = 1; depth <= 4; ++depth) {
    for (int width = 1; width <= 2; ++width) {
      for (int window = depth * width; window <= 3 * depth * width + 1; ++window) {
        for (int first = 0; first < window; ++first) {
          for (int stop = 1; stop <= 3; ++stop) {
            ScheduleRequest request = request_of(ScheduleKind::kOneFOneB, depth, width, window, 1);
            request.first_window = 2;
            request.first_minibatch = first;
            request.stop_after_rounds = stop;
            const Schedule schedule = make_schedule(request).value();
            const int run = std::min(stop * depth * width, window - first);
            EXPECT_EQ(schedule.next_position().value, 2 * window + first + run) << describe(request);
            EXPECT_EQ(schedule.remaining_in_window(), window - first - run) << describe(request);
            EXPECT_EQ(schedule.slices.back().complete, schedule.remaining_in_window() == 0) << describe(request);
          }
        }
      }
    }
  }
}

TEST(Drain, LeavesNothingWhenTheWindowEnds) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 4, 1, 9, 3)).value();
  EXPECT_EQ(schedule.next_position().value, 27);
  EXPECT_EQ(schedule.remaining_in_window(), 0);
}

// What happened to the data while one plan followed another.
struct History {
  std::vector<std::int64_t> consumed;  // positions, in the order of schedules and super-rounds
  std::map<std::int64_t, int> summed;  // gradients of stage 0 that were captured at a stop or applied, per window
};

void run(const ScheduleRequest& request, History& history) {
  const Schedule schedule = make_schedule(request).value();
  RC_ASSERT(validate(schedule).ok());
  std::set<std::int64_t> positions;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    for (const Op& op : schedule.workers[worker]) {
      if (op.kind != OpKind::kForward || op.stage != 0) continue;
      RC_ASSERT(positions.insert(schedule.position_of(worker, op).value).second);
    }
  }
  history.consumed.insert(history.consumed.end(), positions.begin(), positions.end());
  const VersionTable table = trace_versions(schedule);
  for (const WindowSlice& slice : schedule.slices) {
    const int last_round = schedule.rounds_in(slice) - 1;
    history.summed[slice.window] +=
        slice.complete ? table.applied.at({slice.window, 0}) : table.captured.at({slice.window, last_round, 0});
  }
}

TEST(Drain, ConsumesEveryPositionOnceInOrderWhateverPlanFollows) {
  EXPECT_TRUE(rc::check([] {
    const int window = *rc::gen::inRange(4, 40);
    History history;
    Position next;
    for (int plans = *rc::gen::inRange(1, 8); plans > 0; --plans) {
      ScheduleRequest request;
      request.kind = *rc::gen::elementOf(all_schedule_kinds());
      request.depth = *rc::gen::suchThat(rc::gen::inRange(1, std::min(window, 16) + 1),
                                         [&](int depth) { return exists_at(request.kind, depth); });
      request.width = *rc::gen::inRange(1, window / request.depth + 1);
      request.window = window;
      request.windows = *rc::gen::inRange(1, 4);
      request.first_window = next.value / window;
      request.first_minibatch = static_cast<int>(next.value % window);
      request.preload = *rc::gen::inRange(1, 3);
      request.pipelines = *rc::gen::elementOf(clockwork_pipelines(request.depth));
      request.lag = *rc::gen::inRange(0, 2);
      request.capture_every_rounds = *rc::gen::inRange(0, 3);
      if (*rc::gen::arbitrary<bool>()) request.stop_after_rounds = *rc::gen::inRange(1, 4);
      run(request, history);
      const Schedule schedule = make_schedule(request).value();
      RC_ASSERT(schedule.next_position() > next);
      next = schedule.next_position();
      RC_ASSERT((next.value + schedule.remaining_in_window()) % window == 0);
    }
    RC_ASSERT(static_cast<std::int64_t>(history.consumed.size()) == next.value);
    for (std::int64_t i = 0; i < next.value; ++i) RC_ASSERT(history.consumed[i] == i);
    for (const auto& [index, sum] : history.summed) {
      RC_ASSERT(sum == std::min<std::int64_t>(window, next.value - index * window));
    }
  }));
}

}  // namespace
}  // namespace everstep::scheduler
