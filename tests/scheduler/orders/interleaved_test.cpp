#include <string>

#include <gtest/gtest.h>

#include "scheduler/schedule.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

// With the stage, since a device runs several.
std::string staged_form(const std::vector<Op>& ops) {
  std::string text;
  for (const Op& op : ops) {
    if (!is_compute(op)) continue;
    text += (text.empty() ? "" : " ") + short_form({op}) + "@" + std::to_string(op.stage);
  }
  return text;
}

TEST(Interleaved, TakesTurnsBetweenChunksEveryDepthMinibatches) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kInterleaved, 2, 1, 4, 1)).value();
  EXPECT_EQ(staged_form(schedule.workers[0]),
            "F0@0 F1@0 F0@2 F1@2 F0'@0 B0@2 F1'@0 B1@2 F0'@2 B0@0 F1'@2 B1@0 B0'@2 B1'@2 B0'@0 B1'@0");
  EXPECT_EQ(staged_form(schedule.workers[1]),
            "F0@1 F1@1 F0@3 B0@3 F1@3 B1@3 F0'@1 B0@1 F1'@1 B1@1 F0'@3 B0'@3 F1'@3 B1'@3 B0'@1 B1'@1");
}

TEST(Interleaved, LeavesOutTheMinibatchesOfAPartialRound) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kInterleaved, 2, 1, 3, 1)).value();
  EXPECT_EQ(staged_form(schedule.workers[0]), "F0@0 F1@0 F0@2 F1@2 F0'@0 B0@2 B1@2 F0'@2 B0@0 B1@0 B0'@2 B0'@0");
}

TEST(Interleaved, WithOneChunkRunsEachMinibatchOnceEverywhere) {
  ScheduleRequest request = request_of(ScheduleKind::kInterleaved, 4, 1, 8, 1);
  request.chunks_per_device = 1;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(short_form(schedule.workers[3]), "F0 B0 F1 B1 F2 B2 F3 B3 F0' B0' F1' B1' F2' B2' F3' B3' U");
}

TEST(Interleaved, RunsAllChunksOfOneDeviceAtDepthOne) {
  ScheduleRequest request = request_of(ScheduleKind::kInterleaved, 1, 1, 2, 1);
  request.chunks_per_device = 3;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(staged_form(schedule.workers[0]), "F0@0 F0@1 F0@2 B0@2 F0'@0 B0@1 F0'@1 B0@0 F0'@2 B0'@2 B0'@1 B0'@0");
}

}  // namespace
}  // namespace everstep::scheduler
