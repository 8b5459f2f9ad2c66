#include "trainer/loop/op_stream.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/support.h"

namespace everstep::trainer {
namespace {

using scheduler::Op;
using scheduler::Schedule;
using scheduler::ScheduleKind;
using scheduler::ScheduleRequest;

// Shapes of every kind that can be trained, with full and partial rounds, with and without captures, from the start,
// from inside a window and from a live checkpoint.
std::vector<ScheduleRequest> requests() {
  struct Depths {
    ScheduleKind kind;
    std::vector<int> depths;
  };
  const std::vector<Depths> kinds = {{ScheduleKind::kAmdp, {2, 4, 8}},         {ScheduleKind::kAmdpSync, {2, 4}},
                                     {ScheduleKind::kOneFOneB, {1, 2, 3, 5}},  {ScheduleKind::kTwoDirections, {2, 4}},
                                     {ScheduleKind::kGpipe, {1, 4}},           {ScheduleKind::kInterleaved, {2, 4}},
                                     {ScheduleKind::kClockwork, {1, 2, 3, 8}}, {ScheduleKind::kClockworkSync, {2, 3}}};
  std::vector<ScheduleRequest> all;
  for (const Depths& each : kinds) {
    for (const int depth : each.depths) {
      for (const int width : {1, 2}) {
        for (const int extra : {0, 1, depth * width, depth * width + depth - 1}) {
          const int window = depth * width + extra;
          std::set<int> starts{0, depth * width / 2};
          if (is_asynchronous(each.kind)) starts.insert(window);  // resumed from a live checkpoint
          for (const int first_minibatch : starts) {
            ScheduleRequest request = request_of(each.kind, depth, width, window, 1);
            request.first_window = 3;
            request.first_minibatch = first_minibatch;
            request.capture_every_rounds = extra % 3;
            all.push_back(request);
            if (each.kind != ScheduleKind::kClockwork) continue;
            for (request.pipelines = 1; request.pipelines <= 2; ++request.pipelines) {
              request.lag = extra % 2;
              if (make_schedule(request)) all.push_back(request);
            }
          }
        }
      }
    }
  }
  return all;
}

std::vector<Op> ops_of(const OpStream& stream) {
  std::vector<Op> ops;
  for (std::int64_t i = 0; i < stream.size(); ++i) ops.push_back(stream.at(i));
  return ops;
}

TEST(OpStream, IsTheScheduleForAnyNumberOfWindows) {
  for (ScheduleRequest request : requests()) {
    for (request.windows = 1; request.windows <= 7; ++request.windows) {
      const Schedule schedule = scheduler::make_schedule(request).value();
      for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
        const OpStream stream = OpStream::make(request, worker).value();
        ASSERT_EQ(ops_of(stream), schedule.workers[worker]) << to_string(schedule);
        EXPECT_EQ(stream.last_window(), schedule.slices.back().window);
      }
    }
  }
}

TEST(OpStream, KnowsThePositionOfEveryPass) {
  for (ScheduleRequest request : requests()) {
    request.windows = 6;
    const Schedule schedule = scheduler::make_schedule(request).value();
    for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
      const OpStream stream = OpStream::make(request, worker).value();
      for (const Op& op : schedule.workers[worker]) {
        if (!is_compute(op)) continue;
        ASSERT_EQ(stream.position_of(op), schedule.position_of(worker, op)) << to_string(op);
      }
    }
  }
}

TEST(OpStream, EndsEarlyAsIfItHadBeenMadeSo) {
  for (ScheduleRequest request : requests()) {
    request.windows = 7;
    for (int windows = 1; windows <= 7; ++windows) {
      ScheduleRequest shorter = request;
      shorter.windows = windows;
      OpStream stream = OpStream::make(request, 0).value();
      stream.end_after(request.first_window + windows - 1);
      ASSERT_EQ(ops_of(stream), ops_of(OpStream::make(shorter, 0).value()));
    }
  }
}

// A stop is agreed on at an update, so nothing that has run by then may change.
TEST(OpStream, KeepsWhatWasRunBeforeAnEarlyEnd) {
  for (ScheduleRequest request : requests()) {
    request.windows = 7;
    const OpStream whole = OpStream::make(request, 0).value();
    OpStream ended = whole;
    ended.end_after(request.first_window + 4);
    for (std::int64_t i = 0; whole.at(i) != scheduler::update_of(request.first_window + 3); ++i) {
      ASSERT_EQ(ended.at(i), whole.at(i));
    }
  }
}

TEST(OpStream, IsNotEndedLaterThanItWould) {
  OpStream stream = OpStream::make(request_of(ScheduleKind::kAmdp, 2, 1, 4, 5), 1).value();
  const std::vector<Op> before = ops_of(stream);
  stream.end_after(9);
  EXPECT_EQ(ops_of(stream), before);
}

TEST(OpStream, RefusesAScheduleThatCannotBeTrained) {
  const auto stream = OpStream::make(request_of(ScheduleKind::kPipedream2bw, 2, 1, 4, 1), 0);
  ASSERT_FALSE(stream.ok());
  EXPECT_THAT(stream.error().message, testing::HasSubstr("not trained"));
}

}  // namespace
}  // namespace everstep::trainer
