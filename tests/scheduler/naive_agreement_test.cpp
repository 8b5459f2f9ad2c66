#include <set>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/execution.h"
#include "scheduler/run_checks.h"
#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/naive_float.h"
#include "tests/scheduler/naive_run.h"
#include "tests/scheduler/support.h"

// validate, execute and trace_versions against the dumb second implementation, on all small shapes.
namespace everstep::scheduler {
namespace {

using ::testing::IsEmpty;

void expect_agreement(const ScheduleRequest& request, std::uint64_t seed) {
  SCOPED_TRACE(describe(request) + " seed=" + std::to_string(seed));
  const auto schedule = make_schedule(request);
  ASSERT_TRUE(schedule) << schedule.error();
  const SeededCosts costs{seed};
  const NaiveReport naive = run_naively(*schedule, costs);
  ASSERT_THAT(naive.problems, IsEmpty());
  const Status valid = validate(*schedule);
  ASSERT_TRUE(valid) << valid.error();

  const Execution execution = execute(*schedule, costs);
  EXPECT_FALSE(execution.hang);
  if (splits_backwards(request.kind)) {
    const NaiveTimes times = run_tick_by_tick(*schedule, costs);
    EXPECT_EQ(execution.spans, times.spans);
    EXPECT_EQ(execution.weights, times.weights);
    const Status followed = validate_run(*schedule, ops_as_run(*schedule, execution.weights));
    EXPECT_TRUE(followed.ok()) << followed.error();
  } else {
    EXPECT_EQ(execution.spans, naive.spans);
  }

  const VersionTable table = trace_versions(*schedule);
  std::vector<std::vector<std::int64_t>> seen;
  for (const auto& versions : table.seen) {
    seen.emplace_back();
    for (const Version version : versions) seen.back().push_back(version.value);
  }
  EXPECT_EQ(seen, naive.seen);
  std::set<std::tuple<int, std::int64_t, int, int, int>> mismatched;
  for (const auto& [op, group, forward, backward] : table.mismatches) {
    mismatched.insert({group, op.window, op.round, op.minibatch, op.stage});
    EXPECT_EQ(forward.next(), backward);
  }
  EXPECT_EQ(mismatched, naive.mismatched);
  EXPECT_EQ(mismatched.size(), table.mismatches.size());
  EXPECT_EQ(table.applied, naive.applied);
  EXPECT_EQ(table.captured, naive.captured);
  EXPECT_EQ(std::set(table.doubly_buffered.begin(), table.doubly_buffered.end()), naive.doubly_buffered);
}

// Every window size up to three super-rounds, each with several random choices of everything else.
void expect_agreement_at(int depth, int width) {
  const int super_round = depth * width;
  for (const ScheduleKind kind : kinds_at(depth)) {
    for (int window = super_round; window <= 3 * super_round; ++window) {
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const RandomStream random(seed, static_cast<std::uint64_t>(window));
        std::uint64_t draws = 0;
        const auto below = [&](int bound) {
          return static_cast<int>(random.below(draws++, static_cast<std::uint64_t>(bound)));
        };
        ScheduleRequest request = request_of(kind, depth, width, window, 1 + below(3));
        request.preload = 1 + below(2);
        request.chunks_per_device = 1 + below(3);
        request.first_window = below(3);
        if (below(2) == 0) request.first_minibatch = below(window);
        request.capture_every_rounds = below(3);
        if (below(3) == 0) request.flush_after = {request.first_window + below(2)};
        if (below(2) == 0) request.stop_after_rounds = 1 + below(3);
        if (is_clockwork(kind)) {
          const std::vector<int> choices = clockwork_pipelines(depth);
          request.pipelines = choices[below(static_cast<int>(choices.size()))];
          request.lag = below(2);
          if (kind == ScheduleKind::kClockwork && below(4) == 0) request.first_minibatch = window;
        }
        expect_agreement(request, seed);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(NaiveAgreement, HoldsForOneGroup) {
  for (int depth = 1; depth <= 8; ++depth) expect_agreement_at(depth, 1);
}

TEST(NaiveAgreement, HoldsForTwoGroups) {
  for (int depth = 1; depth <= 6; ++depth) expect_agreement_at(depth, 2);
}

TEST(NaiveAgreement, HoldsForThreeGroups) {
  for (int depth = 1; depth <= 4; ++depth) expect_agreement_at(depth, 3);
}

TEST(NaiveAgreement, HoldsForDeepPipelines) {
  for (const int depth : {12, 16}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      ScheduleRequest request = request_of(kind, depth, 1, depth + 5, 2);
      request.first_minibatch = 3;
      request.capture_every_rounds = 1;
      expect_agreement(request, static_cast<std::uint64_t>(depth));
    }
  }
}

// What is chosen at random above is a full product here, at the depths where AMDP differs in kind.
TEST(NaiveAgreement, HoldsForEveryStartStopAndCaptureOfSmallAmdp) {
  std::uint64_t seed = 0;
  for (const int depth : {2, 4}) {
    for (int window = depth; window <= 2 * depth + 1; ++window) {
      for (int first = 0; first < window; ++first) {
        for (const int preload : {1, 2}) {
          for (int stop = 0; stop <= 2; ++stop) {
            for (int capture = 0; capture <= 1; ++capture) {
              ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, 1, window, 2);
              request.first_minibatch = first;
              request.preload = preload;
              if (stop > 0) request.stop_after_rounds = stop;
              request.capture_every_rounds = capture;
              expect_agreement(request, seed++);
              if (HasFailure()) return;
            }
          }
        }
      }
    }
  }
}

// Every number of pipelines and several lags, with windows that end inside a round.
TEST(NaiveAgreement, HoldsForEveryShapeOfClockwork) {
  std::uint64_t seed = 0;
  for (int depth = 1; depth <= 16; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      for (const int window : {depth, depth + 1, 2 * depth + 1}) {
        for (const int lag : {0, 1}) {
          ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, window, 3);
          request.pipelines = pipelines;
          request.lag = lag;
          request.capture_every_rounds = 1;
          expect_agreement(request, seed++);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(NaiveAgreement, HoldsForEveryStartStopAndCaptureOfSmallClockwork) {
  std::uint64_t seed = 0;
  for (const auto& [depth, pipelines] : {std::pair(1, 1), {2, 1}, {3, 1}, {4, 2}, {4, 1}}) {
    for (int window = depth; window <= 2 * depth + 1; ++window) {
      for (int first = 0; first <= window; ++first) {
        for (const int lag : {0, 1}) {
          for (int stop = 0; stop <= 3; ++stop) {
            ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, window, 2);
            request.pipelines = pipelines;
            request.first_minibatch = first;
            request.lag = lag;
            if (stop > 0) request.stop_after_rounds = stop;
            request.capture_every_rounds = stop % 2;
            expect_agreement(request, seed++);
            if (HasFailure()) return;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
