#include "scheduler/clockwork.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "scheduler/schedule_summary.h"
#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/naive_clock.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

ScheduleRequest clockwork(int depth, int pipelines, int window, int windows, int lag = 0) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, window, windows);
  request.pipelines = pipelines;
  request.lag = lag;
  return request;
}

TEST(ClockworkOrder, HasEveryEvenDepthWithHalfAsManyPipelinesAndEveryDepthWithOne) {
  for (int depth = 1; depth <= 64; ++depth) {
    const std::vector<int> all = clockwork_pipelines(depth);
    EXPECT_EQ(all.front(), usual_clockwork_pipelines(depth));
    EXPECT_EQ(all.back(), 1);
    EXPECT_TRUE(std::is_sorted(all.rbegin(), all.rend()));
  }
  EXPECT_THAT(clockwork_pipelines(16), ElementsAre(8, 4, 2, 1));
  EXPECT_THAT(clockwork_pipelines(12), ElementsAre(6, 3, 2, 1));
  EXPECT_THAT(clockwork_pipelines(7), ElementsAre(1));
}

TEST(ClockworkOrder, HasThePhasesThatTryingFinds) {
  int shapes = 0;
  for (int depth = 1; depth <= 64; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      const Clock clock(depth, pipelines);
      std::vector<int> phases;
      for (int pipeline = 0; pipeline < pipelines; ++pipeline) phases.push_back(clock.phase(pipeline));
      EXPECT_EQ(phases, naive_phases(clockwork(depth, pipelines, depth, 1))) << "D=" << depth << " P=" << pipelines;
      shapes += pipelines > 1 ? 1 : 0;
    }
  }
  EXPECT_EQ(shapes, 87);
}

TEST(ClockworkOrder, RunsAForwardAndABackwardInTurn) {
  const Schedule schedule = make_schedule(clockwork(4, 2, 8, 2)).value();
  EXPECT_EQ(
      short_form(schedule.workers[0]),
      "F0 F1 F0' B1 F1' B0 F0'' B1' F1'' B0' F0''' B1'' F1''' B0'' F0 B1''' F1 B0''' U F0' B1 F1' B0 F0'' B1' F1'' "
      "B0' F0''' B1'' F1''' B0'' B1''' B0''' U");
  const Schedule single = make_schedule(clockwork(3, 1, 4, 2)).value();
  EXPECT_EQ(short_form(single.workers[2]),
            "F0 B0 F0' B0' F0'' B0'' F0''' B0''' F0 B0 U F0' B0' F0'' B0'' F0''' B0''' U");
}

TEST(ClockworkOrder, HasTwoMinibatchesAtStageZeroWithHalfAsManyPipelinesAsDevices) {
  for (int depth = 2; depth <= 16; depth += 2) {
    const InFlightPeak peak = in_flight_peak(make_schedule(clockwork(depth, depth / 2, 4 * depth, 2)).value());
    EXPECT_EQ(peak, (InFlightPeak{2, depth / 2 + 1})) << "D=" << depth;
  }
  EXPECT_EQ(in_flight_peak(make_schedule(clockwork(7, 1, 28, 2)).value()), (InFlightPeak{7, 7}));
}

// What the update does to a window in the middle: minibatches whose forward and backward meet different versions, those
// that run on the old version only, and chunks that need a second gradient buffer.
std::tuple<int, int, int> touched(const ScheduleRequest& request) {
  const Schedule schedule = make_schedule(request).value();
  const VersionTable table = trace_versions(schedule);
  std::set<std::pair<int, int>> mixed;
  std::set<std::pair<int, int>> old;
  for (const Mismatch& mismatch : table.mismatches) {
    if (mismatch.backward.window == 2) mixed.insert({mismatch.backward.round, mismatch.backward.minibatch});
  }
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      const std::pair minibatch(op.round, op.minibatch);
      const bool is_old = is_compute(op) && op.window == 2 && table.seen[worker][i].value == 1;
      if (is_old && !mixed.contains(minibatch)) old.insert(minibatch);
    }
  }
  return {static_cast<int>(mixed.size()), static_cast<int>(old.size()), static_cast<int>(table.doubly_buffered.size())};
}

// The figures of the design.
TEST(ClockworkOrder, TouchesAsManyMinibatchesAsItsLagSays) {
  EXPECT_EQ(touched(clockwork(4, 2, 16, 4, 0)), std::tuple(2, 0, 0));
  EXPECT_EQ(touched(clockwork(4, 2, 16, 4, 1)), std::tuple(4, 0, 2));
  EXPECT_EQ(touched(clockwork(4, 2, 16, 4, 4)), std::tuple(2, 2, 8));
  EXPECT_EQ(touched(clockwork(8, 4, 32, 4, 0)), std::tuple(4, 0, 0));
  EXPECT_EQ(touched(clockwork(8, 4, 32, 4, 1)), std::tuple(8, 0, 4));
  EXPECT_EQ(touched(clockwork(8, 4, 32, 4, 8)), std::tuple(4, 4, 32));
  EXPECT_EQ(touched(clockwork(8, 4, 8, 4, 1)), std::tuple(8, 0, 4));
  EXPECT_EQ(touched(clockwork(6, 3, 32, 4, 0)), std::tuple(3, 0, 0));
  EXPECT_EQ(touched(clockwork(16, 8, 64, 4, 0)), std::tuple(8, 0, 0));
  EXPECT_EQ(touched(clockwork(7, 1, 16, 4, 0)), std::tuple(6, 0, 5));
}

TEST(ClockworkOrder, RefusesALagThatReachesTheReduceOfTheNextWindow) {
  for (const auto& [depth, pipelines] : {std::pair(4, 2), {4, 1}, {7, 1}, {8, 2}, {12, 3}}) {
    const int largest = Clock(depth, pipelines).largest_lag(2 * depth + 1, 1);
    const auto schedule = make_schedule(clockwork(depth, pipelines, 2 * depth + 1, 4, largest));
    ASSERT_TRUE(schedule.ok()) << schedule.error();
    EXPECT_TRUE(validate(*schedule).ok()) << validate(*schedule).error();
    const auto too_late = make_schedule(clockwork(depth, pipelines, 2 * depth + 1, 4, largest + 1));
    ASSERT_FALSE(too_late.ok());
    EXPECT_THAT(too_late.error().message, HasSubstr("at most " + std::to_string(largest)));
  }
}

TEST(ClockworkOrder, RefusesPipelinesThatDoNotFit) {
  for (const auto& [depth, pipelines] : {std::pair(6, 2), {7, 7}, {8, 8}, {9, 3}, {4, 3}}) {
    const auto schedule = make_schedule(clockwork(depth, pipelines, 4 * depth, 1));
    ASSERT_FALSE(schedule.ok());
    EXPECT_THAT(schedule.error().message, HasSubstr(std::to_string(pipelines) + " pipelines"));
  }
  EXPECT_FALSE(make_schedule(clockwork(4, -1, 16, 1)).ok());
  EXPECT_FALSE(make_schedule(clockwork(4, 2, 16, 1, -1)).ok());
}

TEST(ClockworkOrder, DealsOneMinibatchPerPipelineAndGroupInTurn) {
  ScheduleRequest request = clockwork(4, 2, 10, 1);
  request.width = 2;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(schedule.rounds_in(schedule.slices[0]), 3);
  EXPECT_EQ(schedule.minibatches_in(schedule.slices[0], 2, 0), 2);
  EXPECT_EQ(schedule.minibatches_in(schedule.slices[0], 2, 1), 0);
  EXPECT_EQ(schedule.position_of(4, {OpKind::kForward, 0, 1, 1, 0}).value, 7);
  EXPECT_THAT(share_of_group(request, 1, 3), ElementsAre(MinibatchRange{2, 4}, MinibatchRange{6, 8}));
  EXPECT_THAT(share_of_group(request, 0, 3),
              ElementsAre(MinibatchRange{0, 2}, MinibatchRange{4, 6}, MinibatchRange{8, 10}));
}

// With fewer pipelines a device turns to a later round at a high stage before it is through with this one at a low
// stage, so that a capture cannot wait for the one before it.
TEST(ClockworkOrder, CapturesEveryChunkBehindItsOwnLastBackward) {
  ScheduleRequest request = clockwork(12, 2, 48, 1);
  request.capture_every_rounds = 1;
  const Schedule schedule = make_schedule(request).value();
  ASSERT_TRUE(validate(schedule).ok()) << validate(schedule).error();
  bool out_of_turn = false;
  for (const std::vector<Op>& ops : schedule.workers) {
    int latest = -1;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind != OpKind::kCapture) continue;
      EXPECT_EQ(ops[i - 1].kind, OpKind::kBackward);
      EXPECT_EQ(ops[i - 1].stage, ops[i].stage);
      EXPECT_EQ(ops[i - 1].round, ops[i].round);
      out_of_turn = out_of_turn || ops[i].round < latest;
      latest = std::max(latest, ops[i].round);
    }
  }
  EXPECT_TRUE(out_of_turn);
}

TEST(ClockworkOrder, CapturesNothingBeforeTheWindowCanBeCut) {
  ScheduleRequest request = clockwork(5, 1, 10, 2);
  request.capture_every_rounds = 1;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(schedule.rounds_before_cut(0), 1);
  EXPECT_EQ(schedule.rounds_before_cut(1), 4);
  std::set<std::pair<std::int64_t, int>> captured;
  for (const Op& op : schedule.workers[2]) {
    if (op.kind == OpKind::kCapture) captured.insert({op.window, op.round});
  }
  EXPECT_EQ(captured.size(), 9 + 6);
  EXPECT_EQ(captured.lower_bound({1, 0})->second, 3);
}

TEST(ClockworkOrder, DrainsItsSynchronousTwinBeforeEveryUpdate) {
  for (int depth = 1; depth <= 12; ++depth) {
    ScheduleRequest request = request_of(ScheduleKind::kClockworkSync, depth, 1, 2 * depth + 1, 3);
    const Schedule schedule = make_schedule(request).value();
    ASSERT_TRUE(validate(schedule).ok()) << validate(schedule).error();
    EXPECT_TRUE(trace_versions(schedule).mismatches.empty());
    EXPECT_TRUE(trace_versions(schedule).doubly_buffered.empty());
    for (const std::vector<Op>& ops : schedule.workers) {
      EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end(), [](const Op& a, const Op& b) { return a.window < b.window; }));
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
