#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

bool is_left_over(const Op& op, std::int64_t window) { return op.window > window || op == update_of(window); }

// The same windows run in one go, without what came before the update.
std::vector<Op> rest_of(const std::vector<Op>& ops, std::int64_t window) {
  std::vector<Op> rest;
  std::copy_if(ops.begin(), ops.end(), std::back_inserter(rest),
               [&](const Op& op) { return is_left_over(op, window); });
  return rest;
}

std::vector<Version> versions_of_rest(const Schedule& schedule, int worker, std::int64_t window) {
  const VersionTable table = trace_versions(schedule);
  std::vector<Version> versions;
  for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
    if (is_left_over(schedule.workers[worker][i], window)) versions.push_back(table.seen[worker][i]);
  }
  return versions;
}

void expect_the_rest_of_the_whole(ScheduleRequest request) {
  request.first_window = 6;
  const Schedule whole = make_schedule(request).value();
  request.first_minibatch = request.window;
  const Schedule resumed = make_schedule(request).value();
  const Status valid = validate(resumed);
  ASSERT_TRUE(valid.ok()) << describe(request) << valid.error();
  ASSERT_EQ(parse_schedule(to_string(resumed)).value().workers, resumed.workers) << describe(request);
  for (int worker = 0; worker < request.depth * request.width; ++worker) {
    ASSERT_EQ(resumed.workers[worker], rest_of(whole.workers[worker], 6)) << describe(request);
    ASSERT_EQ(versions_of_rest(resumed, worker, 6), versions_of_rest(whole, worker, 6)) << describe(request);
  }
}

TEST(LiveResume, RunsWhatTheUninterruptedScheduleHasLeft) {
  for (const int depth : {2, 4, 8, 12}) {
    for (const int width : {1, 2}) {
      for (const int window : {depth * width, 2 * depth * width + 1, 4 * depth * width}) {
        for (const int captures : {0, 1, 2}) {
          ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, width, window, 4);
          request.capture_every_rounds = captures;
          expect_the_rest_of_the_whole(request);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(LiveResume, RunsWhatIsLeftOfClockworkWhateverItsPipelinesAndItsLag) {
  for (int depth = 1; depth <= 12; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      for (const int width : {1, 2}) {
        for (const int window : {depth * width, 2 * depth * width + 1}) {
          for (const int lag : {0, 1}) {
            ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, width, window, 4);
            request.pipelines = pipelines;
            request.lag = lag;
            request.capture_every_rounds = lag + width % 2;
            expect_the_rest_of_the_whole(request);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST(LiveResume, IsForPipelinesThatStayFullAcrossAnUpdate) {
  for (const ScheduleKind kind : kinds_at(4)) {
    if (kind == ScheduleKind::kAmdp || kind == ScheduleKind::kClockwork) continue;
    ScheduleRequest request = request_of(kind, 4, 1, 16, 2);
    request.first_minibatch = 16;
    const auto schedule = make_schedule(request);
    ASSERT_FALSE(schedule.ok()) << to_string(kind);
    EXPECT_THAT(schedule.error().message, HasSubstr("first minibatch is 16"));
  }
}

}  // namespace
}  // namespace everstep::scheduler
