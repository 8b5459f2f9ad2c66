#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "scheduler/versions.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

Schedule of(ScheduleKind kind, int depth, int window, int windows = 1) {
  return make_schedule(request_of(kind, depth, 1, window, windows)).value();
}

TEST(OneFOneB, AlternatesAfterAWarmUpThatShrinksAlongThePipeline) {
  const Schedule schedule = of(ScheduleKind::kOneFOneB, 3, 5);
  EXPECT_EQ(short_form(schedule.workers[0]), "F0 F1 F2 B0 F0' B1 F1' B2 B0' B1' U");
  EXPECT_EQ(short_form(schedule.workers[1]), "F0 F1 B0 F2 B1 F0' B2 F1' B0' B1' U");
  EXPECT_EQ(short_form(schedule.workers[2]), "F0 B0 F1 B1 F2 B2 F0' B0' F1' B1' U");
}

TEST(OneFOneB, IsPlainAccumulationAtDepthOne) {
  const Schedule schedule = of(ScheduleKind::kOneFOneB, 1, 3, 2);
  EXPECT_EQ(short_form(schedule.workers[0]), "F0 B0 F0' B0' F0'' B0'' U F0 B0 F0' B0' F0'' B0'' U");
}

TEST(OneFOneB, HoldsAtMostDepthMinusStageMinibatches) {
  for (int depth = 1; depth <= 16; ++depth) {
    const Schedule schedule = of(ScheduleKind::kOneFOneB, depth, 3 * depth + 1);
    for (int stage = 0; stage < depth; ++stage) {
      int in_flight = 0;
      int most = 0;
      for (const Op& op : schedule.workers[stage]) {
        if (op.kind == OpKind::kForward) most = std::max(most, ++in_flight);
        if (op.kind == OpKind::kBackward) --in_flight;
      }
      EXPECT_EQ(most, depth - stage);
    }
  }
}

TEST(Gpipe, RunsAllForwardsThenAllBackwards) {
  const Schedule schedule = of(ScheduleKind::kGpipe, 2, 3);
  for (const auto& ops : schedule.workers) EXPECT_EQ(short_form(ops), "F0 F1 F0' B0 B1 B0' U");
}

TEST(Gpipe, ReachesAWindowWhereOneGroupHasNothing) {
  ScheduleRequest request = request_of(ScheduleKind::kGpipe, 2, 2, 4, 1);
  request.first_minibatch = 3;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(short_form(schedule.workers[0]), "F0 B0 U");
  EXPECT_EQ(short_form(schedule.workers[3]), "U");
}

TEST(Pipedream2bw, UpdatesEachStageAfterItsOwnLastBackwardAndGoesOn) {
  const Schedule schedule = of(ScheduleKind::kPipedream2bw, 2, 2, 3);
  EXPECT_EQ(short_form(schedule.workers[0]), "F0 F1 B0 F0 B1 U F1 B0 F0 B1 U F1 B0 B1 U");
  EXPECT_EQ(short_form(schedule.workers[1]), "F0 B0 F1 B1 U F0 B0 F1 B1 U F0 B0 F1 B1 U");
}

// The window's version is fixed when it starts, so forward and backward agree, one update behind.
TEST(Pipedream2bw, RunsEachWindowOnTheVersionBeforeTheLast) {
  ScheduleRequest request = request_of(ScheduleKind::kPipedream2bw, 4, 1, 6, 5);
  request.first_window = 7;
  request.flush_after = {9};
  const Schedule schedule = make_schedule(request).value();
  const VersionTable table = trace_versions(schedule);
  EXPECT_TRUE(table.mismatches.empty());
  EXPECT_TRUE(table.doubly_buffered.empty());
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      const bool after_drain = op.window == 7 || op.window == 10;
      if (is_compute(op)) {
        EXPECT_EQ(table.seen[worker][i].value, after_drain ? op.window : op.window - 1) << to_string(op);
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
