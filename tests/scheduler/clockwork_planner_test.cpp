#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/estimate.h"
#include "scheduler/model_shape.h"
#include "scheduler/planner.h"
#include "scheduler/validate.h"
#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

PlanShape shape_of(const ModelProfile& profile, int depth, int pipelines) {
  const Placement placement = Placement::make(ScheduleKind::kClockwork, depth, 1, pipelines).value();
  return make_shape(profile, {}, ScheduleKind::kClockwork, placement);
}

TEST(ClockworkPlanner, HasAFastPlanForEveryNumberOfWorkers) {
  const ModelProfile profile = split_profile(even_profile(48));
  for (int count = 2; count <= 24; ++count) {
    const auto report = plan(profile, crew(count), asked_for(ScheduleKind::kClockwork, 96));
    ASSERT_TRUE(report.ok()) << report.error();
    const auto schedule = make_schedule(request_of(report->plan, 3, 2));
    ASSERT_TRUE(schedule.ok()) << schedule.error();
    EXPECT_TRUE(validate(*schedule).ok()) << report->reason;
    EXPECT_GT(report->chosen.busy, 0.86) << count << ": " << report->reason;
  }
}

// Nobody has to ask for it, at any number of workers.
TEST(ClockworkPlanner, ChoosesItUnaskedForEqualBlocks) {
  for (int count = 2; count <= 12; ++count) {
    PlanOptions options;
    options.window = 48;
    options.width = 1;
    const auto report = plan(split_profile(even_profile(24)), crew(count), options);
    EXPECT_EQ(report->plan.kind, ScheduleKind::kClockwork) << count << ": " << report->reason;
    options.synchronous = true;
    const auto drained = plan(split_profile(even_profile(24)), crew(count), options);
    for (const Candidate& candidate : drained->candidates) EXPECT_FALSE(is_asynchronous(candidate.kind)) << count;
  }
}

TEST(ClockworkPlanner, TakesClockworkWhereItIsFastest) {
  const ModelProfile profile = split_profile(random_profile(20, 3));
  int taken = 0;
  for (int count = 1; count <= 20; ++count) {
    PlanOptions options;
    options.window = 60;
    options.clockwork = false;
    const auto without = plan(profile, crew(count), options);
    options.clockwork = true;
    const auto with = plan(profile, crew(count), options);
    EXPECT_LE(static_cast<double>(with->chosen.window_time),
              kPlanTolerance * static_cast<double>(without->chosen.window_time));
    const bool chosen = is_clockwork(with->chosen.kind);
    taken += chosen ? 1 : 0;
    EXPECT_TRUE(validate(make_schedule(request_of(with->plan, 1, 3)).value()).ok()) << with->reason;
  }
  EXPECT_GT(taken, 15);
}

TEST(ClockworkPlanner, RunsTheSynchronousTwinIfAskedTo) {
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 32);
  options.synchronous = true;
  EXPECT_THAT(plan(even_profile(8), crew(4), options).error().hint, HasSubstr("clockwork-sync"));
  options.kind = ScheduleKind::kClockworkSync;
  EXPECT_EQ(plan(even_profile(8), crew(4), options)->plan.kind, ScheduleKind::kClockworkSync);
}

// Half as many pipelines as devices have more replicas and fewer minibatches in flight.
TEST(ClockworkPlanner, PrefersHalfAsManyPipelinesWithinThreePercent) {
  const ModelProfile profile = split_profile(even_profile(16, 1'000'000, 10'000));
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 64);
  options.depth = 8;
  const auto report = plan(profile, crew(8), options);
  EXPECT_EQ(report->plan.pipelines, 4);
  std::map<int, Tick> times;
  for (const Candidate& candidate : report->candidates) times[candidate.pipelines] = candidate.window_time;
  EXPECT_EQ(times.size(), 2U);
  EXPECT_LE(times[4], times[1] + times[1] * 3 / 100);
}

// 32 minibatches are six rounds of five and a rest, and 32 rounds of one.
TEST(ClockworkPlanner, WeighsPipelinesAgainstARoundThatIsNotFull) {
  const ModelProfile profile = split_profile(even_profile(10, 1'000'000, 10'000));
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 32);
  options.depth = 10;
  options.width = 1;
  EXPECT_EQ(plan(profile, crew(10), options)->plan.pipelines, 1);
  options.window = 30;
  EXPECT_EQ(plan(profile, crew(10), options)->plan.pipelines, 5);
}

TEST(ClockworkPlanner, TakesFewerPipelinesWhereHalfTheModelDoesNotFit) {
  const ModelProfile profile = split_profile(even_profile(16, 1'000'000, 100'000'000));
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 64);
  options.depth = 16;
  int pipelines = 8;
  for (const int gib : {8, 5, 4, 3}) {
    options.hardware.memory_bytes = std::int64_t{gib} << 30;
    const auto report = plan(profile, crew(16), options);
    ASSERT_TRUE(report.ok()) << report.error();
    EXPECT_LE(report->plan.pipelines, pipelines);
    pipelines = report->plan.pipelines;
  }
  EXPECT_LT(pipelines, 8);
}

TEST(ClockworkPlanner, HasAsManyPipelinesAsItIsAskedFor) {
  const ModelProfile profile = split_profile(even_profile(24));
  for (const int pipelines : {1, 2, 4}) {
    PlanOptions options;
    options.window = 64;
    options.depth = 8;
    options.pipelines = pipelines;
    const auto report = plan(profile, crew(8), options);
    ASSERT_TRUE(report.ok()) << report.error();
    EXPECT_EQ(report->plan.pipelines, pipelines);
    for (const Candidate& candidate : report->candidates) EXPECT_EQ(candidate.pipelines, pipelines);
    options.depth.reset();
    EXPECT_EQ(plan(profile, crew(8), options)->plan.pipelines, pipelines);
  }
}

TEST(ClockworkPlanner, NamesThePipelinesThatADepthCanHave) {
  const auto refused = [](std::optional<ScheduleKind> kind, std::optional<int> depth, int pipelines, int workers = 8) {
    PlanOptions options;
    options.window = 64;
    options.kind = kind;
    options.depth = depth;
    options.pipelines = pipelines;
    const auto report = plan(even_profile(24), crew(workers), options);
    return report.ok() ? report->reason : report.error().line();
  };
  EXPECT_EQ(refused({}, 8, 3),
            "no plan has a schedule with 3 pipelines for depth 8 (hint: at depth 8 there can be 1, 2 or 4)");
  EXPECT_EQ(refused(ScheduleKind::kAmdp, 8, 2),
            "no plan has amdp with 2 pipelines for depth 8 (hint: at depth 8 there can be 4)");
  EXPECT_EQ(refused(ScheduleKind::kClockwork, 7, 2),
            "no plan has clockwork with 2 pipelines for depth 7 (hint: at depth 7 there can be 1)");
  EXPECT_THAT(refused({}, {}, 9),
              HasSubstr("with 9 pipelines for 8 workers (hint: at depth 8 there can be 1, 2 or 4)"));
  EXPECT_EQ(refused(ScheduleKind::kAmdp, {}, 4, 6),
            "no plan has amdp with 4 pipelines for 6 workers (hint: at depth 4 there can be 2)");
  EXPECT_EQ(refused(ScheduleKind::kAmdp, {}, 1, 1),
            "no plan has amdp for 1 worker, 24 blocks and a window of 64 (hint: leave kind, depth and width to the "
            "planner)");
  EXPECT_THAT(refused({}, {}, 0), HasSubstr("the number of pipelines must be at least 1"));
}

TEST(ClockworkPlanner, PutsUpdatesOffWhereThatHidesAReduce) {
  const ModelProfile profile = split_profile(even_profile(8, 1'000'000, 40'000'000));
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 64);
  options.depth = 8;
  options.width = 2;
  EXPECT_EQ(plan(profile, crew(16), options)->plan.lag, 8);
  options.hardware.link_bytes_per_second = std::int64_t{1} << 44;
  EXPECT_EQ(plan(profile, crew(16), options)->plan.lag, 0);
}

TEST(ClockworkPlanner, PutsUpdatesOffAsFarAsItIsAskedTo) {
  const ModelProfile profile = split_profile(even_profile(8, 1'000'000, 40'000'000));
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 64);
  options.depth = 8;
  for (const int lag : {0, 3, 8}) {
    options.lag = lag;
    EXPECT_EQ(plan(profile, crew(8), options)->plan.lag, lag);
  }
  options.lag = 1000;
  const auto latest = plan(profile, crew(8), options);
  EXPECT_EQ(latest->plan.lag, 8) << "at most the depth";
  EXPECT_TRUE(make_schedule(request_of(latest->plan, 0, 3)).ok());
  options.hardware.link_bytes_per_second = std::int64_t{1} << 44;  // so that four pipelines are as fast as one
  options.hardware.memory_bytes = plan(profile, crew(8), options)->chosen.peak_bytes - 1;
  EXPECT_EQ(plan(profile, crew(8), options)->plan.lag, 0) << "there is no room for second buffers";
  options.lag = -1;
  EXPECT_THAT(plan(profile, crew(8), options).error().message, HasSubstr("lag"));
}

TEST(ClockworkPlanner, CountsActivationsUntilTheGradientsOfWeightsAndSecondBuffers) {
  ModelProfile profile = split_profile(even_profile(8, 1'000'000, 0));
  for (BlockProfile& block : profile.blocks) block.activation_bytes = 1000;
  EXPECT_EQ(shape_of(profile, 8, 4).largest_peak(), 1000 * (8 / 2 + 2));
  EXPECT_EQ(shape_of(profile, 8, 1).largest_peak(), 1000 * (8 + 1));
  for (BlockProfile& block : profile.blocks) block.weights = 0;
  EXPECT_EQ(shape_of(profile, 8, 4).largest_peak(), 1000 * (8 / 2 + 1));
  const ModelProfile heavy = split_profile(even_profile(8, 1'000'000, 1000));
  const PlanShape at_once = shape_of(heavy, 8, 4);
  const PlanShape later = with_lag(heavy, {}, at_once, 8);
  EXPECT_EQ(later.largest_peak() - at_once.largest_peak(), 4 * 1000 * heavy.gradient_bytes);
}

TEST(ClockworkPlanner, ExtrapolatesLongWindowsOfEveryShape) {
  const ModelProfile profile = split_profile(random_profile(16, 9));
  for (int depth = 1; depth <= 16; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      const PlanShape shape = shape_of(profile, depth, pipelines);
      ScheduleRequest request;
      request.kind = ScheduleKind::kClockwork;
      request.depth = depth;
      request.pipelines = pipelines;
      request.window = depth * 12 + 3;
      const auto full = steady_state(request, timing_model(profile, {}, shape.placement, 1, shape.cuts));
      const SteadyState quick = window_time(profile, {}, shape, request.window, 1, 2);
      EXPECT_NEAR(static_cast<double>(quick.window) / static_cast<double>(full->window), 1, 5e-3)
          << depth << " " << pipelines;
    }
  }
}

TEST(ModelShape, PutsOffTheGradientsOfAllWeightsButTheHeads) {
  const ModelProfile profile = estimate_profile(*find_model("gpt2-xl"));
  EXPECT_EQ(profile.blocks.back().weights, 0);
  for (std::size_t block = 1; block + 1 < profile.blocks.size(); ++block) {
    const double share =
        static_cast<double>(profile.blocks[block].weights) / static_cast<double>(profile.blocks[block].backward);
    EXPECT_GT(share, 0.4);
    EXPECT_LT(share, 0.5);
  }
}

}  // namespace
}  // namespace everstep::scheduler
