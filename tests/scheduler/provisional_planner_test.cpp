#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/estimate.h"
#include "scheduler/planner.h"
#include "scheduler/validate.h"
#include "tests/scheduler/planning_support.h"

// Which plans have a provisional step, and what the memory that it takes does to the others.
namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

TEST(ProvisionalPlanner, TakesOneThatIsHiddenAndCountsItsMemory) {
  const ModelProfile profile = split_profile(even_profile(24));
  for (const ScheduleKind kind : {ScheduleKind::kClockwork, ScheduleKind::kAmdp}) {
    PlanOptions options = asked_for(kind, 64);
    options.depth = 4;
    const PlanReport without = plan(profile, crew(4), options).value();
    EXPECT_EQ(without.plan.provisional, 0);
    options.provisional = ProvisionalWish::kAuto;
    const PlanReport with = plan(profile, crew(4), options).value();
    ASSERT_GT(with.plan.provisional, 0);
    EXPECT_LE(static_cast<double>(with.chosen.window_time),
              kProvisionalTolerance * static_cast<double>(without.chosen.window_time));
    EXPECT_GT(with.chosen.peak_bytes, without.chosen.peak_bytes);
    EXPECT_TRUE(std::ranges::find(with.candidates, with.chosen) != with.candidates.end());
    const auto schedule = make_schedule(request_of(with.plan, 3, 3));
    ASSERT_TRUE(schedule.ok()) << schedule.error();
    EXPECT_TRUE(validate(*schedule).ok());
  }
}

TEST(ProvisionalPlanner, ComparesPlansWithoutItAndSortsThemWithIt) {
  const ModelProfile profile = split_profile(even_profile(24));
  for (const std::int64_t link : {std::int64_t{12'500'000'000}, std::int64_t{50'000'000}}) {
    PlanOptions options = asked_for(ScheduleKind::kClockwork, 8);
    options.depth = 4;
    options.lag = 0;
    options.hardware.link_bytes_per_second = link;
    const PlanReport without = plan(profile, crew(8), options).value();
    options.provisional = ProvisionalWish::kOn;
    const PlanReport with = plan(profile, crew(8), options).value();
    EXPECT_EQ(with.reason, without.reason);
    const auto is_faster = [](const Candidate& a, const Candidate& b) { return a.window_time < b.window_time; };
    EXPECT_TRUE(std::ranges::is_sorted(with.candidates, is_faster));
  }
}

TEST(ProvisionalPlanner, LeavesItOutWhereWindowsAreSmallAndNeverRefusesAPlanForThat) {
  const ModelProfile profile = split_profile(even_profile(24));
  for (const ProvisionalWish wish : {ProvisionalWish::kAuto, ProvisionalWish::kOn}) {
    PlanOptions options = asked_for(ScheduleKind::kAmdp, 4);
    options.depth = 4;
    options.provisional = wish;
    EXPECT_EQ(plan(profile, crew(4), options).value().plan.provisional, 0) << "one round";
    options = asked_for(ScheduleKind::kOneFOneB, 16);
    options.provisional = wish;
    EXPECT_EQ(plan(profile, crew(4), options).value().plan.provisional, 0) << "synchronous";
  }
  // Five rounds of one minibatch: at depth 3 a third of them is summed in time.
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 5);
  options.depth = 3;
  options.width = 1;
  options.provisional = ProvisionalWish::kOn;
  EXPECT_GT(plan(profile, crew(3), options).value().plan.provisional, 0);
  options.window = 3;
  EXPECT_EQ(plan(profile, crew(3), options).value().plan.provisional, 0);
}

// Half of the model on each of four workers, and no guards.
PlanOptions four_workers(ProvisionalWish wish) {
  PlanOptions options = asked_for(ScheduleKind::kClockwork, 64);
  options.depth = 4;
  options.pipelines = 2;
  options.redundancy = 0;
  options.provisional = wish;
  return options;
}

TEST(ProvisionalPlanner, TurnsItOffOrRefusesThePlanWhereMemoryIsShortOfIt) {
  const ModelProfile profile = split_profile(even_profile(24));
  const auto peak = [&](ProvisionalWish wish) { return plan(profile, crew(4), four_workers(wish))->chosen.peak_bytes; };
  const std::int64_t less = peak(ProvisionalWish::kOff);
  const std::int64_t more = peak(ProvisionalWish::kOn);
  ASSERT_LT(less, more);
  const auto planned = [&](ProvisionalWish wish, std::int64_t memory) {
    PlanOptions options = four_workers(wish);
    options.hardware.memory_bytes = memory;
    return plan(profile, crew(4), options);
  };
  for (const ProvisionalWish wish : {ProvisionalWish::kAuto, ProvisionalWish::kOn}) {
    const auto fits = planned(wish, more);
    ASSERT_TRUE(fits.ok()) << fits.error();
    EXPECT_GT(fits->plan.provisional, 0);
    EXPECT_FALSE(fits->no_step);
    EXPECT_EQ(fits->chosen.peak_bytes, more);
  }
  for (const std::int64_t memory : {less, more - 1}) {
    const auto off = planned(ProvisionalWish::kAuto, memory);
    ASSERT_TRUE(off.ok()) << off.error();
    EXPECT_EQ(off->plan.provisional, 0);
    EXPECT_EQ(off->no_step, NoStep::kMemory);
    EXPECT_EQ(off->chosen.peak_bytes, less);
    const auto refused = planned(ProvisionalWish::kOn, memory);
    ASSERT_FALSE(refused.ok());
    EXPECT_THAT(refused.error().line(), HasSubstr("no plan with provisional weights fits into "));
    EXPECT_THAT(refused.error().line(), HasSubstr("--provisional=auto"));
  }
  EXPECT_THAT(planned(ProvisionalWish::kOn, less - 1).error().line(), HasSubstr("use more workers"));
}

TEST(ProvisionalPlanner, TakesAnotherShapeIfOnlyThatHasMemoryForAStepThatMustBe) {
  const ModelProfile profile = split_profile(even_profile(24));
  PlanOptions options = four_workers(ProvisionalWish::kOn);
  options.hardware.memory_bytes = plan(profile, crew(4), options)->chosen.peak_bytes - 1;
  options.pipelines.reset();
  const auto report = plan(profile, crew(4), options);
  ASSERT_TRUE(report.ok()) << report.error();
  EXPECT_GT(report->plan.provisional, 0);
  EXPECT_EQ(report->plan.pipelines, 1);
}

TEST(ProvisionalPlanner, KeepsNoRoomForAStepThatCannotBe) {
  const ModelProfile profile = split_profile(even_profile(24));
  PlanOptions options = four_workers(ProvisionalWish::kOn);
  options.kind = ScheduleKind::kAmdp;
  options.window = 8;  // one round for each of two groups, two for one
  const auto on = plan(profile, crew(8), options);
  ASSERT_TRUE(on.ok()) << on.error();
  EXPECT_EQ(on->plan.width, 2);
  EXPECT_EQ(on->no_step, NoStep::kWindows);
  options.provisional = ProvisionalWish::kOff;
  const auto off = plan(profile, crew(8), options);
  EXPECT_EQ(on->chosen, off->chosen);
  EXPECT_EQ(off->no_step, NoStep::kNotWished);
}

// What each worker of the plan has for its own work, and keeps of others.
std::map<WorkerId, std::int64_t> bytes_held(const ModelProfile& profile, const Plan& plan) {
  const Placement placement = placement_of(plan);
  PlanShape shape = make_shape(profile, {}, plan.kind, placement);
  shape = with_lag(profile, {}, with_provisional(profile, {}, shape, plan.provisional), plan.lag);
  std::map<WorkerId, std::int64_t> held;
  for (std::size_t worker = 0; worker < plan.workers.size(); ++worker) {
    held[plan.workers[worker]] = shape.peak_bytes[worker % static_cast<std::size_t>(plan.depth)];
  }
  for (int stage = 0; stage < placement.stages() && !plan.guards.empty(); ++stage) {
    const StageCost cost = stage_cost(profile, plan.cuts[stage], plan.cuts[stage + 1]);
    const std::int64_t version = cost.weight_bytes + cost.optimizer_bytes;
    held[plan.workers[placement.owner_of(stage)]] += version;
    for (const WorkerId& guard : plan.guards[stage]) held[guard] += 2 * version;
  }
  return held;
}

TEST(ProvisionalPlanner, CountsItsMemoryBeforeThatOfGuardsWhoseCopiesComeFirst) {
  const ModelProfile profile = split_profile(even_profile(24));
  std::map<std::optional<NoStep>, int> found;
  const std::int64_t least = plan(profile, crew(4), four_workers(ProvisionalWish::kOff))->chosen.peak_bytes;
  for (std::int64_t memory = least; memory < 4 * least; memory += least / 16) {
    PlanOptions options = four_workers(ProvisionalWish::kOff);
    options.redundancy = 1;
    options.hardware.memory_bytes = memory;
    const auto without = plan(profile, crew(4), options);
    options.provisional = ProvisionalWish::kAuto;
    const auto report = plan(profile, crew(4), options);
    ASSERT_TRUE(without.ok() && report.ok());
    for (const auto& [worker, bytes] : bytes_held(profile, report->plan)) EXPECT_LE(bytes, memory);
    EXPECT_EQ(report->plan.guards.size(), without->plan.guards.size());
    for (std::size_t stage = 0; stage < report->plan.guards.size(); ++stage) {
      EXPECT_EQ(report->plan.guards[stage].size(), without->plan.guards[stage].size());
    }
    ++found[report->no_step];
  }
  EXPECT_GT(found[NoStep::kMemory], 0);
  EXPECT_GT(found[NoStep::kCopies], 0);
  EXPECT_GT(found[std::nullopt], 0);
}

}  // namespace
}  // namespace everstep::scheduler
