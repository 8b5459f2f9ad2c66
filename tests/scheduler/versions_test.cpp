#include "scheduler/versions.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Reads {
  std::int64_t forward = -1;
  std::int64_t backward = -1;

  bool operator==(const Reads&) const = default;
};

void PrintTo(const Reads& reads, std::ostream* out) {  // NOLINT(readability-identifier-naming): GoogleTest's name
  *out << "forward on " << reads.forward << ", backward on " << reads.backward;
}

using Pair = std::tuple<int, std::int64_t, int, int, int>;  // group, window, round, minibatch, stage

std::map<Pair, Reads> reads_of(const Schedule& schedule, const VersionTable& table) {
  std::map<Pair, Reads> reads;
  for (int worker = 0; worker < static_cast<int>(schedule.workers.size()); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      if (!is_compute(op)) continue;
      Reads& pair = reads[{schedule.group_of(worker), op.window, op.round, op.minibatch, op.stage}];
      (op.kind == OpKind::kForward ? pair.forward : pair.backward) = table.seen[worker].at(i).value;
    }
  }
  return reads;
}

// The table of the design: window w runs on v = w, but round 0 of a window that follows another without a drain runs
// its forwards on w - 1. At the last stage the first minibatch of each pipeline runs wholly on w - 1, the second on w.
Reads designed(const ScheduleRequest& request, std::int64_t window, int round, int minibatch, int stage, bool drained) {
  if (drained || round > 0) return {window, window};
  if (stage < request.depth - 1) return {window - 1, window};
  return minibatch < request.depth / 2 ? Reads{window - 1, window - 1} : Reads{window, window};
}

void expect_designed_table(const ScheduleRequest& request, const std::set<std::int64_t>& drained_windows) {
  SCOPED_TRACE(describe(request));
  const Schedule schedule = make_schedule(request).value();
  for (const auto& [pair, reads] : reads_of(schedule, trace_versions(schedule))) {
    const auto& [group, window, round, minibatch, stage] = pair;
    const bool drained = window == request.first_window || drained_windows.contains(window);
    ASSERT_EQ(reads, designed(request, window, round, minibatch, stage, drained))
        << "window " << window << " round " << round << " minibatch " << minibatch << " stage " << stage;
  }
}

TEST(Versions, EqualTheTableOfTheDesign) {
  for (const int depth : {2, 4, 8, 12, 16}) {
    for (const int preload : {1, 2}) {
      for (int rounds = 1; rounds <= 4; ++rounds) {
        ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, 1, rounds * depth, 4);
        request.preload = preload;
        expect_designed_table(request, {});
      }
    }
  }
}

TEST(Versions, EqualTheTableWithPartialRoundsAndSeveralGroups) {
  for (const int depth : {2, 4, 8}) {
    for (int width = 1; width <= 3; ++width) {
      for (int window = depth * width; window <= 2 * depth * width + 1; ++window) {
        expect_designed_table(request_of(ScheduleKind::kAmdp, depth, width, window, 3), {});
      }
    }
  }
}

TEST(Versions, EqualTheTableAfterAResumeInsideAWindow) {
  for (const int depth : {2, 4, 8}) {
    for (int first = 0; first < 2 * depth; ++first) {
      ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, 1, 2 * depth, 3);
      request.first_window = 11;
      request.first_minibatch = first;
      expect_designed_table(request, {});
    }
  }
}

TEST(Versions, AreTheWindowsOwnAfterAFlush) {
  for (const int depth : {2, 4, 8}) {
    ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, 2, 3 * depth, 5);
    request.first_window = 3;
    request.flush_after = {3, 5};
    expect_designed_table(request, {4, 6});
  }
}

TEST(Versions, AreTheWindowsOwnInEverySynchronousKind) {
  for (int depth = 1; depth <= 8; ++depth) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      if (is_asynchronous(kind)) continue;
      const Schedule schedule = make_schedule(request_of(kind, depth, 2, 3 * depth, 3)).value();
      const VersionTable table = trace_versions(schedule);
      EXPECT_THAT(table.mismatches, IsEmpty());
      EXPECT_THAT(table.doubly_buffered, IsEmpty());
      for (const auto& [pair, reads] : reads_of(schedule, table)) {
        ASSERT_EQ(reads, (Reads{std::get<1>(pair), std::get<1>(pair)}));
      }
    }
  }
}

TEST(Versions, MismatchInExactlyDepthMinibatchesOfEveryLaterWindow) {
  for (const int depth : {2, 4, 8, 12, 16, 20, 24, 28, 32}) {
    const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, depth, 1, 2 * depth, 3)).value();
    std::map<std::int64_t, std::set<int>> minibatches;
    std::map<std::int64_t, int> pairs;
    for (const Mismatch& mismatch : trace_versions(schedule).mismatches) {
      EXPECT_EQ(mismatch.backward.kind, OpKind::kBackward);
      EXPECT_EQ(mismatch.forward_version.next(), mismatch.backward_version);
      EXPECT_LT(mismatch.backward.stage, depth - 1);
      minibatches[mismatch.backward.window].insert(mismatch.backward.minibatch);
      ++pairs[mismatch.backward.window];
    }
    EXPECT_THAT(minibatches, SizeIs(2));
    for (const std::int64_t window : {1, 2}) {
      EXPECT_THAT(minibatches[window], SizeIs(depth));
      EXPECT_EQ(pairs[window], depth * (depth - 1));
    }
  }
}

TEST(Versions, NameTheGroupOfAMismatch) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 4, 3, 12, 2)).value();
  std::map<int, int> by_group;
  for (const Mismatch& mismatch : trace_versions(schedule).mismatches) ++by_group[mismatch.group];
  EXPECT_EQ(by_group, (std::map<int, int>{{0, 12}, {1, 12}, {2, 12}}));
}

TEST(Versions, OfAnUpdateAreTheOnesItMakes) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 1, 8, 3);
  request.first_window = 40;
  const Schedule schedule = make_schedule(request).value();
  const VersionTable table = trace_versions(schedule);
  for (int worker = 0; worker < 4; ++worker) {
    std::int64_t in_memory = 40;
    ASSERT_EQ(table.seen[worker].size(), schedule.workers[worker].size());
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      if (op.kind == OpKind::kUpdate) in_memory = op.window + 1;
      EXPECT_EQ(table.seen[worker][i].value, in_memory) << to_string(op);
    }
    EXPECT_EQ(in_memory, 43);
  }
}

TEST(Versions, ApplyEveryGradientOfAWindowOnce) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 2, 21, 3);
  request.first_window = 2;
  request.first_minibatch = 6;
  const VersionTable table = trace_versions(make_schedule(request).value());
  EXPECT_THAT(table.applied, SizeIs(3 * 4));
  for (const auto& [key, count] : table.applied) EXPECT_EQ(count, std::get<0>(key) == 2 ? 15 : 21);
  EXPECT_THAT(table.captured, IsEmpty());
}

TEST(Versions, CaptureExactlyTheRoundsNamed) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 2, 27, 2);
  request.capture_every_rounds = 1;
  request.stop_after_rounds = 3;
  const VersionTable table = trace_versions(make_schedule(request).value());
  // Window 0 has four rounds and ends with an update; window 1 stops after its third.
  EXPECT_THAT(table.captured, SizeIs((3 + 3) * 4));
  for (const auto& [key, count] : table.captured) EXPECT_EQ(count, (std::get<1>(key) + 1) * 8);
  EXPECT_THAT(table.applied, SizeIs(4));
}

// The defect of the published code: what the first backward of an edge device adds before the update must not be lost.
TEST(Versions, NeedTwoBuffersExactlyAtTheLastStages) {
  for (const int depth : {2, 4, 8, 16}) {
    for (int width = 1; width <= 2; ++width) {
      const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, depth, width, 2 * depth, 3)).value();
      std::set<std::tuple<int, int>> expected;
      for (int group = 0; group < width; ++group) {
        for (const int device : schedule.placement.replicas_of(depth - 1)) {
          expected.insert({group * depth + device, depth - 1});
        }
      }
      const auto found = trace_versions(schedule).doubly_buffered;
      EXPECT_EQ(std::set(found.begin(), found.end()), expected);
      EXPECT_EQ(found.size(), expected.size());
    }
  }
}

TEST(Versions, NeedOneBufferWhenEveryWindowIsFlushed) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 8, 1, 8, 3);
  request.flush_after = {0, 1};
  EXPECT_THAT(trace_versions(make_schedule(request).value()).doubly_buffered, IsEmpty());
}

}  // namespace
}  // namespace everstep::scheduler
