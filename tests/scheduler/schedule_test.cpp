#include "scheduler/schedule.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/naive_shape.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kAmdp = ScheduleKind::kAmdp;

std::string refusal_of(const ScheduleRequest& request) {
  const auto slices = slices_of(request);
  const auto schedule = make_schedule(request);
  EXPECT_FALSE(schedule) << describe(request);
  EXPECT_EQ(schedule.error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(slices || slices.error() == schedule.error());
  return schedule.error().line();
}

TEST(Schedule, IsRefusedWithTheFieldThatIsWrong) {
  const auto with = [](auto change) {
    ScheduleRequest request = request_of(kAmdp, 4, 2, 16, 2);
    change(request);
    return refusal_of(request);
  };
  EXPECT_THAT(with([](auto& r) { r.depth = 0; }), HasSubstr("depth is 0, must be at least 1"));
  EXPECT_THAT(with([](auto& r) { r.depth = -4; }), HasSubstr("depth is -4"));
  EXPECT_THAT(with([](auto& r) { r.depth = 6; }), HasSubstr("multiple of 4"));
  EXPECT_THAT(with([](auto& r) { r.width = 0; }), HasSubstr("width is 0"));
  EXPECT_THAT(with([](auto& r) { r.windows = 0; }), HasSubstr("windows is 0"));
  EXPECT_THAT(with([](auto& r) { r.first_window = -1; }), HasSubstr("first window is -1"));
  EXPECT_THAT(with([](auto& r) { r.first_minibatch = -1; }), HasSubstr("first minibatch is -1"));
  EXPECT_THAT(with([](auto& r) { r.first_minibatch = 17; }), HasSubstr("first minibatch is 17, but a window has 16"));
  EXPECT_THAT(with([](auto& r) { r.preload = 0; }), HasSubstr("preload is 0, must be 1 or 2"));
  EXPECT_THAT(with([](auto& r) { r.preload = 3; }), HasSubstr("preload is 3"));
  EXPECT_THAT(with([](auto& r) { r.stop_after_rounds = 0; }), HasSubstr("stop is 0, must be at least 1"));
  EXPECT_THAT(with([](auto& r) { r.capture_every_rounds = -1; }), HasSubstr("captures is -1"));
}

TEST(Schedule, NeedsAMinibatchPerDeviceInEveryWindow) {
  EXPECT_TRUE(make_schedule(request_of(kAmdp, 4, 3, 12, 2)));
  EXPECT_THAT(refusal_of(request_of(kAmdp, 4, 3, 11, 2)),
              AllOf(HasSubstr("11 minibatches"), HasSubstr("12 devices"), HasSubstr("hint")));
  EXPECT_THAT(refusal_of(request_of(kAmdp, 4, 1, 0, 1)), HasSubstr("window of 0"));
  EXPECT_THAT(refusal_of(request_of(kAmdp, 1000, 1'000'000, std::numeric_limits<int>::max() / 4, 1)),
              HasSubstr("1000000000 devices"));
}

TEST(Schedule, RefusesSizesThatNobodyRuns) {
  EXPECT_THAT(refusal_of(request_of(kAmdp, 1004, 1, 5000, 1)), HasSubstr("too large"));
  EXPECT_THAT(refusal_of(request_of(kAmdp, 4, 1, 4, 1'000'001)), HasSubstr("too large"));
}

TEST(Slices, CoverTheWindowsFromTheFirstMinibatchToTheEnd) {
  ScheduleRequest request = request_of(kAmdp, 4, 1, 10, 3);
  request.first_window = 5;
  request.first_minibatch = 3;
  EXPECT_THAT(slices_of(request).value(),
              ElementsAre(WindowSlice{5, 3, 10, true}, WindowSlice{6, 0, 10, true}, WindowSlice{7, 0, 10, true}));
}

TEST(Slices, EndAtTheStopOfTheLastWindow) {
  ScheduleRequest request = request_of(kAmdp, 4, 1, 10, 2);
  request.first_minibatch = 3;
  request.stop_after_rounds = 1;
  EXPECT_THAT(slices_of(request).value(), ElementsAre(WindowSlice{0, 3, 10, true}, WindowSlice{1, 0, 4, false}));
  request.windows = 1;
  EXPECT_THAT(slices_of(request).value(), ElementsAre(WindowSlice{0, 3, 7, false}));
  request.stop_after_rounds = 2;
  EXPECT_THAT(slices_of(request).value(), ElementsAre(WindowSlice{0, 3, 10, true}));
  request.stop_after_rounds = std::numeric_limits<int>::max();
  EXPECT_THAT(slices_of(request).value(), ElementsAre(WindowSlice{0, 3, 10, true}));
}

TEST(Schedule, CountsSuperRoundsFromWhereTheSliceStarts) {
  const Schedule schedule = make_schedule(request_of(kAmdp, 4, 2, 19, 1)).value();
  const WindowSlice& slice = schedule.slices.front();
  EXPECT_EQ(schedule.rounds_in(slice), 3);
  EXPECT_EQ(schedule.minibatches_in(slice, 0, 0), 4);
  EXPECT_EQ(schedule.minibatches_in(slice, 1, 1), 4);
  EXPECT_EQ(schedule.minibatches_in(slice, 2, 0), 3);
  EXPECT_EQ(schedule.minibatches_in(slice, 2, 1), 0);
  EXPECT_EQ(schedule.minibatches_in(slice, 3, 0), 0);
}

// Positions as the data loader will see them: exactly the dealt ones, per group in order, and every super-round a
// contiguous piece that continues the one before, so that a cut after any of them is a prefix.
TEST(Schedule, DealsBySuperRoundsSoThatEveryCutIsAPrefix) {
  for (int depth = 1; depth <= 5; ++depth) {
    for (int width = 1; width <= 3; ++width) {
      for (int window = depth * width; window <= 3 * depth * width + 1; ++window) {
        for (int first = 0; first < window; ++first) {
          ScheduleRequest request = request_of(ScheduleKind::kOneFOneB, depth, width, window, 2);
          request.first_window = 3;
          request.first_minibatch = first;
          const Schedule schedule = make_schedule(request).value();
          std::map<std::pair<std::int64_t, int>, std::set<std::int64_t>> by_round;
          for (int worker = 0; worker < depth * width; ++worker) {
            for (const Op& op : schedule.workers[worker]) {
              if (op.kind != OpKind::kForward || op.stage != 0) continue;
              const auto [place, fresh] =
                  by_round[{op.window, op.round}].insert(schedule.position_of(worker, op).value);
              ASSERT_TRUE(fresh) << describe(request) << " deals " << *place << " twice";
            }
          }
          std::int64_t next = 3 * window + first;
          for (const auto& [round, positions] : by_round) {
            ASSERT_EQ(*positions.begin(), next) << describe(request);
            ASSERT_EQ(*positions.rbegin(), next + std::ssize(positions) - 1) << describe(request);
            next += std::ssize(positions);
          }
          ASSERT_EQ(next, 5 * window);
          ASSERT_EQ(schedule.next_position().value, next);
        }
      }
    }
  }
}

TEST(Schedule, GivesEveryOpOfAMinibatchThePositionItWasDealt) {
  for (const int depth : {1, 2, 3, 4, 6, 8}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      for (int width = 1; width <= 3; ++width) {
        ScheduleRequest request = request_of(kind, depth, width, 2 * depth * width + depth - 1, 2);
        request.first_window = 1;
        request.first_minibatch = depth;
        const Schedule schedule = make_schedule(request).value();
        std::map<std::tuple<int, std::int64_t, int, int>, std::int64_t> dealt;
        for (const DealtMinibatch& item : deal(request)) {
          dealt[{item.group, item.window, item.round, item.minibatch}] = item.position;
        }
        for (int worker = 0; worker < depth * width; ++worker) {
          for (const Op& op : schedule.workers[worker]) {
            if (!is_compute(op)) continue;
            ASSERT_EQ(schedule.position_of(worker, op).value,
                      dealt.at({worker / depth, op.window, op.round, op.minibatch}));
          }
        }
      }
    }
  }
}

TEST(Schedule, NamesWorkersByGroupAndDevice) {
  const Schedule schedule = make_schedule(request_of(kAmdp, 4, 3, 12, 1)).value();
  ASSERT_EQ(schedule.workers.size(), 12U);
  EXPECT_EQ(schedule.group_of(6), 1);
  EXPECT_EQ(schedule.device_of(6), 2);
  EXPECT_EQ(schedule.worker_of(1, 1, 1), 4 + schedule.placement.device_of(1, 1));
  EXPECT_EQ(schedule.pipeline_of(Op{OpKind::kForward, 0, 3, 0, 0}), 1);
}

TEST(Schedule, IsAPureFunctionOfItsRequest) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      const ScheduleRequest request = request_of(kind, depth, 2, 5 * depth, 3);
      const Schedule once = make_schedule(request).value();
      const Schedule again = make_schedule(request).value();
      EXPECT_EQ(once.request, again.request);
      EXPECT_EQ(once.slices, again.slices);
      EXPECT_EQ(once.workers, again.workers);
    }
  }
}

TEST(Schedule, OfALaterWindowDiffersOnlyInTheWindowsName) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      ScheduleRequest request = request_of(kind, depth, 1, 2 * depth + 1, 3);
      const Schedule early = make_schedule(request).value();
      constexpr std::int64_t kLate = 1'000'000'000'001;
      request.first_window = kLate;
      Schedule late = make_schedule(request).value();
      for (auto& ops : late.workers) {
        for (Op& op : ops) op.window -= kLate;
      }
      EXPECT_EQ(early.workers, late.workers) << describe(request);
    }
  }
}

// Only M - k matters for a first slice: this is why the exhaustive tests need no product of M and k.
TEST(Schedule, OfAWindowStartedInsideEqualsThatOfAShorterWindow) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      for (int width = 1; width <= 2; ++width) {
        const int super_round = depth * width;
        for (int length = super_round; length <= 2 * super_round + 1; ++length) {
          ScheduleRequest request = request_of(kind, depth, width, length, 1);
          const Schedule whole = make_schedule(request).value();
          request.first_minibatch = super_round / 2 + 1;
          request.window += request.first_minibatch;
          EXPECT_EQ(make_schedule(request).value().workers, whole.workers) << describe(request);
        }
      }
    }
  }
}

// What it is dealt is what it runs, under every shape and remainder.
TEST(ShareOfGroup, IsWhatTheGroupsWorkersRun) {
  for (const int width : {1, 2, 3}) {
    for (const int window : {12, 13, 17}) {
      ScheduleRequest request;
      request.kind = ScheduleKind::kOneFOneB;
      request.depth = 2;
      request.width = width;
      request.window = window;
      const Schedule schedule = make_schedule(request).value();
      for (int group = 0; group < width; ++group) {
        std::set<int> dealt;
        for (const MinibatchRange& range : share_of_group(request, group, schedule.rounds_in(schedule.slices[0]))) {
          for (int i = range.first; i < range.end; ++i) EXPECT_TRUE(dealt.insert(i).second);
        }
        std::set<int> run;
        for (const Op& op : schedule.workers[static_cast<std::size_t>(group) * 2]) {
          if (is_compute(op)) run.insert(static_cast<int>(schedule.position_of(group * 2, op).value));
        }
        EXPECT_EQ(dealt, run) << "group " << group << " of " << width << ", window " << window;
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
