#include "scheduler/planner.h"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/estimate.h"
#include "scheduler/guards.h"
#include "scheduler/validate.h"
#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

// Kinds with numbers of pipelines (0: the usual one). Of each list only the first that fits counts.
using Ways = std::vector<std::vector<std::pair<ScheduleKind, int>>>;

Ways all_ways(int depth, const PlanOptions& options) {
  Ways ways{{{ScheduleKind::kOneFOneB, 0}}};
  if (depth % 2 == 0) ways.push_back({{ScheduleKind::kTwoDirections, 0}});
  if (is_amdp_depth(depth)) ways = {{{ScheduleKind::kAmdp, 0}, {ScheduleKind::kOneFOneB, 0}}};
  if (!options.clockwork || depth == 1) return ways;
  ways.emplace_back();
  ways.emplace_back();
  for (const int pipelines : clockwork_pipelines(depth)) {
    (ways.end() - 2)->emplace_back(ScheduleKind::kClockwork, pipelines);
    if (options.window % pipelines == 0) ways.back().emplace_back(ScheduleKind::kClockwork, pipelines);
  }
  ways.push_back({{ScheduleKind::kClockwork, 1}});
  return ways;
}

std::vector<PlanShape> all_shapes(int depth, const ModelProfile& profile, const PlanOptions& options) {
  std::vector<PlanShape> shapes;
  for (const auto& preferred : all_ways(depth, options)) {
    for (const auto& [kind, pipelines] : preferred) {
      const auto placement = Placement::make(kind, depth, 1, pipelines);
      shapes.push_back(make_shape(profile, options.hardware, kind, *placement));
      if (shapes.back().largest_peak() <= options.hardware.memory_bytes) break;
      shapes.pop_back();
    }
  }
  return shapes;
}

// In clockwork with the update where it can be at the soonest, D slots later if that gains more than 1 %, or one slot
// later if that gains as much.
std::pair<PlanShape, SteadyState> with_the_best_lag(const PlanShape& shape, int width, const ModelProfile& profile,
                                                    const PlanOptions& options) {
  const auto timed = [&](const PlanShape& one) {
    return std::pair(one, window_time(profile, options.hardware, one, options.window, width, options.preload));
  };
  const auto at_once = timed(shape);
  if (shape.kind != ScheduleKind::kClockwork) return at_once;
  const int depth = shape.placement.depth();
  const int latest = std::min(depth, Clock(depth, shape.placement.pipelines()).largest_lag(options.window, width));
  const auto gains = [](const auto& late, const auto& soon) {
    return static_cast<double>(soon.second.window) > 1.01 * static_cast<double>(late.second.window);
  };
  const auto at_lag = [&](int lag) { return timed(with_lag(profile, options.hardware, shape, lag)); };
  const auto fits = [&](const auto& one) { return one.first.largest_peak() <= options.hardware.memory_bytes; };
  if (latest < 1) return at_once;
  const auto late = at_lag(latest);
  if (!fits(late) || !gains(late, at_once)) return at_once;
  const auto sooner = at_lag(1);
  return fits(sooner) && !gains(late, sooner) ? sooner : late;
}

// A planner that tries everything: no bounds, no classes of widths, no early end.
std::optional<Candidate> plan_by_trying_everything(const ModelProfile& profile, const std::vector<WorkerInfo>& workers,
                                                   const PlanOptions& options) {
  struct Tried {
    Plan plan;
    Candidate candidate;
    std::vector<StageCost> stages;
    std::vector<std::int64_t> free_bytes;
  };
  std::vector<Tried> all;
  int fewest = 1 << 30;
  const int count = static_cast<int>(workers.size());
  for (int depth = 1; depth <= std::min<int>(count, static_cast<int>(profile.blocks.size())); ++depth) {
    for (const PlanShape& plain : all_shapes(depth, profile, options)) {
      for (int width = 1; depth * width <= std::min(count, options.window); ++width) {
        const auto [shape, steady] = with_the_best_lag(plain, width, profile, options);
        Tried tried;
        tried.plan.kind = shape.kind;
        tried.plan.depth = depth;
        tried.plan.pipelines = shape.placement.pipelines();
        tried.plan.width = width;
        tried.plan.cuts = shape.cuts;
        tried.candidate.kind = shape.kind;
        tried.candidate.depth = depth;
        tried.candidate.pipelines = tried.plan.pipelines;
        tried.candidate.lag = shape.lag;
        tried.candidate.width = width;
        tried.candidate.window_time = steady.window;
        tried.stages = timing_model(profile, options.hardware, shape.placement, width, shape.cuts).stages;
        for (const auto peak : shape.peak_bytes) tried.free_bytes.push_back(options.hardware.memory_bytes - peak);
        all.push_back(tried);
        fewest = std::min(fewest, depth);
      }
    }
  }
  if (all.empty()) return std::nullopt;
  Tick fastest = all.front().candidate.window_time;
  for (const Tried& tried : all) fastest = std::min(fastest, tried.candidate.window_time);
  const Plan* previous = options.previous ? &*options.previous : nullptr;
  std::optional<Candidate> best;
  const auto rank = [&](const Candidate& c) {
    const bool is_crowded = options.clockwork && c.depth > 2 * c.pipelines;
    return std::tuple(*c.moved_bytes, is_crowded, -c.survives->workers, -c.survives->hosts, c.window_time);
  };
  for (Tried& tried : all) {
    if (static_cast<double>(tried.candidate.window_time) > 1.03 * static_cast<double>(fastest)) continue;
    seat_workers(tried.plan, profile, workers, previous);
    place_guards(tried.plan, tried.stages, workers, options.redundancy, tried.free_bytes);
    tried.candidate.survives = survival_of(tried.plan, tried.stages, workers, fewest, tried.free_bytes);
    tried.candidate.moved_bytes = previous != nullptr ? moved_bytes(profile, previous, tried.plan) : 0;
    if (!best || rank(tried.candidate) < rank(*best)) best = tried.candidate;
  }
  return best;
}

void expect_agreement(const ModelProfile& profile, const std::vector<WorkerInfo>& workers, const PlanOptions& options,
                      const std::string& what) {
  const auto report = plan(profile, workers, options);
  const auto expected = plan_by_trying_everything(profile, workers, options);
  ASSERT_EQ(report.ok(), expected.has_value()) << what;
  if (!expected) return;
  const auto shape = [](const Candidate& c) {
    return std::tuple(c.kind, c.depth, c.pipelines, c.width, c.lag, c.window_time);
  };
  EXPECT_EQ(shape(report->chosen), shape(*expected)) << what << ": " << report->reason;
  EXPECT_EQ(report->chosen.moved_bytes, expected->moved_bytes) << what;
  EXPECT_EQ(report->chosen.survives, expected->survives) << what;
}

// By whether clockwork may be chosen.
class PlannerAndOneThatTriesEverything : public testing::TestWithParam<bool> {};

TEST_P(PlannerAndOneThatTriesEverything, Agree) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const ModelProfile profile = split_profile(random_profile(6 + static_cast<int>(seed), seed));
    for (int count = 1; count <= 13; ++count) {
      PlanOptions options;
      options.window = 16 + 5 * static_cast<int>(seed);
      options.clockwork = GetParam();
      options.hardware.memory_bytes = std::int64_t{2} << 30;
      expect_agreement(profile, crew(count, 3), options, "seed " + std::to_string(seed) + ", " + std::to_string(count));
    }
  }
}

TEST_P(PlannerAndOneThatTriesEverything, AgreeWhenAPlanIsRunning) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const ModelProfile profile = split_profile(random_profile(8, seed));
    for (int before = 1; before <= 9; before += 2) {
      PlanOptions options;
      options.window = 24;
      options.clockwork = GetParam();
      options.hardware.memory_bytes = std::int64_t{6} << 30;
      options.previous = plan(profile, crew(before, 2), options)->plan;
      for (int count = 1; count <= 10; ++count) {
        const std::string what =
            std::to_string(before) + " -> " + std::to_string(count) + ", seed " + std::to_string(seed);
        expect_agreement(profile, crew(count, 2), options, what);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Clockwork, PlannerAndOneThatTriesEverything, testing::Bool(),
                         [](const auto& test) { return test.param ? "Too" : "Without"; });

TEST(Planner, HasAPlanForEveryNumberOfWorkersAndItsScheduleIsValid) {
  const ModelProfile profile = even_profile(20);
  for (int count = 1; count <= 40; ++count) {
    PlanOptions options;
    options.window = 64;
    const auto report = plan(profile, crew(count), options);
    ASSERT_TRUE(report.ok()) << count;
    const auto schedule = make_schedule(request_of(report->plan, 3, 2));
    ASSERT_TRUE(schedule.ok()) << count;
    EXPECT_TRUE(validate(*schedule).ok()) << count << " " << report->reason;
    EXPECT_EQ(schedule->workers.size() + report->plan.spares.size(), static_cast<std::size_t>(count));
  }
}

TEST(Planner, NeverUsesMoreDevicesThanAWindowHasMinibatches) {
  PlanOptions options;
  options.window = 5;
  const auto report = plan(even_profile(20), crew(12), options);
  EXPECT_LE(report->plan.depth * report->plan.width, 5);
  EXPECT_GE(report->plan.spares.size(), 7U);
}

TEST(Planner, FallsBackToOnePipelineWhereHalfTheModelDoesNotFit) {
  const ModelProfile profile = even_profile(16, 1'000'000, 100'000'000);
  PlanOptions options;
  options.depth = 8;
  options.clockwork = false;
  options.hardware.memory_bytes = std::int64_t{8} << 30;
  EXPECT_EQ(plan(profile, crew(8), options)->plan.kind, ScheduleKind::kAmdp);
  options.hardware.memory_bytes = std::int64_t{4} << 30;
  EXPECT_EQ(plan(profile, crew(8), options)->plan.kind, ScheduleKind::kOneFOneB);
}

TEST(Planner, RunsTheSynchronousTwinWhenAskedTo) {
  PlanOptions options;
  options.depth = 4;
  options.clockwork = false;
  options.synchronous = true;
  const auto report = plan(even_profile(8), crew(4), options);
  EXPECT_EQ(report->plan.kind, ScheduleKind::kAmdpSync);
}

TEST(Planner, StaysWithTheRunningPlanWhenAFasterOneIsWithinThreePercent) {
  const ModelProfile profile = random_profile(12, 77);
  PlanOptions options;
  options.window = 48;
  const auto first = plan(profile, crew(8), options);
  options.previous = first->plan;
  const auto again = plan(profile, crew(8), options);
  EXPECT_EQ(again->plan, first->plan);
  EXPECT_EQ(again->chosen.moved_bytes, 0);
}

TEST(Planner, ListsCandidatesFastestFirstAndThoseThatDoNotFitLast) {
  PlanOptions options;
  options.window = 32;
  options.hardware.memory_bytes = 900'000'000;
  const auto report = plan(even_profile(16, 1'000'000, 10'000'000), crew(8), options);
  ASSERT_TRUE(report.ok()) << report.error();
  bool fits = true;
  Tick last = 0;
  for (const Candidate& candidate : report->candidates) {
    EXPECT_TRUE(fits || !candidate.fits) << "one that fits after one that does not";
    fits = candidate.fits;
    EXPECT_TRUE(!fits || candidate.window_time >= last);
    last = candidate.window_time;
  }
  EXPECT_FALSE(fits);
  EXPECT_EQ(std::count(report->candidates.begin(), report->candidates.end(), report->chosen), 1);
}

TEST(Planner, SaysHowMuchMemoryIsMissing) {
  PlanOptions options;
  options.hardware.memory_bytes = 1 << 20;
  const auto report = plan(even_profile(4, 1'000'000, 100'000'000), crew(2), options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message,
            "no plan fits into 0.00 GiB per worker: the smallest, 1f1b D=2 P=1 W=1, needs 3.35 GiB, 3.35 GiB more");
}

TEST(Planner, RefusesImpossibleWishes) {
  const ModelProfile profile = even_profile(6);
  const auto message = [&](int workers, const PlanOptions& options) {
    const auto report = plan(profile, crew(workers), options);
    return report.ok() ? std::string("a plan") : report.error().message;
  };
  PlanOptions deep;
  deep.depth = 7;
  EXPECT_NE(message(8, deep).find("more stages than the model has blocks (6)"), std::string::npos);
  PlanOptions wide;
  wide.depth = 4;
  wide.width = 3;
  EXPECT_NE(message(8, wide).find("more than the 8 workers"), std::string::npos);
  PlanOptions small_window;
  small_window.window = 3;
  small_window.depth = 4;
  EXPECT_NE(message(8, small_window).find("window"), std::string::npos);
  PlanOptions odd;
  odd.kind = ScheduleKind::kAmdp;
  odd.depth = 3;
  EXPECT_NE(message(8, odd).find("AMDP needs a depth of 2 or a multiple of 4"), std::string::npos);
  EXPECT_NE(message(0, {}).find("at least one worker"), std::string::npos);
  PlanOptions compared;
  compared.kind = ScheduleKind::kGpipe;
  EXPECT_NE(message(8, compared).find("to compare with"), std::string::npos);
  PlanOptions contradictory;
  contradictory.kind = ScheduleKind::kAmdp;
  contradictory.synchronous = true;
  EXPECT_NE(message(8, contradictory).find("not synchronous"), std::string::npos);
  PlanOptions endless;
  endless.window = 1'000'001;
  EXPECT_NE(message(8, endless).find("between 1 and 1000000"), std::string::npos);
  PlanOptions corrupt;
  corrupt.previous = plan(profile, crew(4))->plan;
  corrupt.previous->cuts.pop_back();
  EXPECT_NE(message(4, corrupt).find("contradicts itself"), std::string::npos);
  EXPECT_NE(plan(profile, {crew(1)[0], crew(1)[0]}).error().message.find("twice"), std::string::npos);
}

TEST(Estimate, BoundsNeverExceedTheTimelinesTime) {
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const ModelProfile profile = random_profile(12, seed);
    for (const ScheduleKind kind :
         {ScheduleKind::kAmdp, ScheduleKind::kAmdpSync, ScheduleKind::kOneFOneB, ScheduleKind::kTwoDirections,
          ScheduleKind::kClockwork, ScheduleKind::kClockworkSync}) {
      for (int depth = 1; depth <= 12; ++depth) {
        const auto placement = Placement::make(kind, depth);
        if (!placement) continue;
        const PlanShape shape = make_shape(profile, {}, kind, *placement);
        for (const int width : {1, 3}) {
          const int window = 3 * depth * width + static_cast<int>(seed);
          EXPECT_LE(window_time_bound(profile, {}, shape, window, width),
                    window_time(profile, {}, shape, window, width, 2).window)
              << to_string(kind) << " depth " << depth;
        }
      }
    }
  }
}

TEST(Estimate, ExtrapolatesLongWindowsAsTheFullTimelineTimesThem) {
  const ModelProfile profile = random_profile(10, 9);
  for (const auto& [kind, depth] :
       {std::pair(ScheduleKind::kAmdp, 4), std::pair(ScheduleKind::kOneFOneB, 5),
        std::pair(ScheduleKind::kTwoDirections, 6), std::pair(ScheduleKind::kTwoDirections, 10),
        std::pair(ScheduleKind::kClockworkSync, 6)}) {
    const auto placement = Placement::make(kind, depth);
    const PlanShape shape = make_shape(profile, {}, kind, *placement);
    ScheduleRequest request;
    request.kind = kind;
    request.depth = depth;
    request.window = depth * 40 + 3;
    const auto full = steady_state(request, timing_model(profile, {}, *placement, 1, shape.cuts));
    const SteadyState quick = window_time(profile, {}, shape, request.window, 1, 2);
    EXPECT_NEAR(static_cast<double>(quick.window) / static_cast<double>(full->window), 1, 1e-3) << to_string(kind);
    EXPECT_NEAR(quick.busy(), full->busy(), 1e-3);
  }
}

}  // namespace
}  // namespace everstep::scheduler
