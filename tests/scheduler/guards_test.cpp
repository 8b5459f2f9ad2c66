#include "scheduler/guards.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "scheduler/planner.h"
#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

PlanReport planned(const ModelProfile& profile, const std::vector<WorkerInfo>& workers, int depth, int width,
                   int redundancy, std::int64_t memory = std::int64_t{1} << 40) {
  PlanOptions options;
  options.depth = depth;
  options.width = width;
  options.redundancy = redundancy;
  options.hardware.memory_bytes = memory;
  auto report = plan(profile, workers, options);
  EVERSTEP_CHECK(report.ok(), report.error().line());
  return *std::move(report);
}

std::set<WorkerId> holders_of(const Plan& plan, int stage) {
  const auto placement = Placement::make(plan.kind, plan.depth);
  std::set<WorkerId> holders(plan.guards[stage].begin(), plan.guards[stage].end());
  for (int group = 0; group < plan.width; ++group) {
    holders.insert(plan.workers[group * plan.depth + placement->owner_of(stage)]);
  }
  return holders;
}

// Whether every stage keeps a copy of its owner state when these are lost.
bool state_survives(const Plan& plan, const std::set<WorkerId>& lost) {
  for (int stage = 0; stage + 1 < static_cast<int>(plan.cuts.size()); ++stage) {
    const std::set<WorkerId> holders = holders_of(plan, stage);
    if (std::all_of(holders.begin(), holders.end(), [&](const WorkerId& id) { return lost.contains(id); }))
      return false;
  }
  return true;
}

// Whether the state survives every loss of `losses` units (workers, or hosts with all workers on them).
bool survives_any(const Plan& plan, const std::vector<std::vector<WorkerId>>& units, int losses) {
  std::vector<bool> chosen(units.size(), false);
  std::fill_n(chosen.begin(), losses, true);
  do {
    std::set<WorkerId> lost;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (chosen[i]) lost.insert(units[i].begin(), units[i].end());
    }
    if (!state_survives(plan, lost)) return false;
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return true;
}

TEST(Guards, MakeThePromisedSurvivalTrueForEverySetOfLosses) {
  const ModelProfile profile = even_profile(12);
  struct Case {
    int workers, per_host, depth, width, redundancy;
  };
  for (const Case& c : {Case{8, 1, 4, 1, 1}, Case{8, 2, 4, 2, 1}, Case{12, 4, 8, 1, 1}, Case{8, 4, 8, 1, 1},
                        Case{9, 3, 4, 2, 2}, Case{6, 2, 2, 3, 0}, Case{7, 7, 4, 1, 2}, Case{10, 2, 5, 2, 3}}) {
    const auto workers = crew(c.workers, c.per_host);
    const PlanReport report = planned(profile, workers, c.depth, c.width, c.redundancy);
    std::vector<std::vector<WorkerId>> singles;
    std::vector<std::vector<WorkerId>> hosts((c.workers + c.per_host - 1) / c.per_host);
    for (int i = 0; i < c.workers; ++i) {
      singles.push_back({workers[i].id});
      hosts[i / c.per_host].push_back(workers[i].id);
    }
    const Survival survives = *report.chosen.survives;
    EXPECT_TRUE(survives_any(report.plan, singles, survives.workers)) << c.workers << " workers, depth " << c.depth;
    EXPECT_TRUE(survives_any(report.plan, hosts, survives.hosts)) << c.workers << " workers, depth " << c.depth;
    // The depth is forced, so fewer workers than that fit no plan.
    const int expendable = c.workers - c.depth;
    EXPECT_EQ(survives.workers, std::min(std::max(c.redundancy, c.width - 1), expendable));
    if (survives.workers < expendable) {
      EXPECT_FALSE(survives_any(report.plan, singles, survives.workers + 1)) << "the promise could be larger";
    }
  }
}

TEST(Guards, SitOnOtherHostsAndNeverOnSpares) {
  const auto workers = crew(6, 2);
  const PlanReport report = planned(even_profile(4), workers, 4, 1, 1);
  ASSERT_EQ(report.plan.spares.size(), 2U);
  for (const auto& guards : report.plan.guards) {
    ASSERT_EQ(guards.size(), 1U);
    EXPECT_NE(guards[0], report.plan.spares[0]);
    EXPECT_NE(guards[0], report.plan.spares[1]);
  }
  EXPECT_EQ(report.chosen.survives->hosts, 1);
}

TEST(Guards, AreNotNeededWhereGroupsAreCopiesOfEachOther) {
  const PlanReport report = planned(even_profile(4), crew(8), 4, 2, 1);
  for (const auto& guards : report.plan.guards) EXPECT_TRUE(guards.empty());
  EXPECT_EQ(report.chosen.survives->workers, 1);
}

TEST(Guards, OnOneHostSurviveWorkersButNotTheHost) {
  const PlanReport report = planned(even_profile(4), crew(5, 5), 4, 1, 1);
  EXPECT_EQ(*report.chosen.survives, (Survival{1, 0}));
}

TEST(Guards, AreLeftOutWhereMemoryIsShortAndThePlanSaysSo) {
  const ModelProfile profile = even_profile(8, 1'000'000, 1'000'000);
  const std::int64_t owner_state = 2 * 14'000'000;  // two blocks: weights and optimizer state
  const auto survives = [&](std::int64_t memory) {
    PlanOptions options;
    options.kind = ScheduleKind::kOneFOneB;
    options.window = 4;  // so that four of five workers are used, at depth 4
    options.depth = 4;
    options.hardware.memory_bytes = memory;
    const auto report = plan(profile, crew(5), options);
    return report.ok() ? report->chosen.survives->workers : -1;
  };
  const std::int64_t peak = planned(profile, crew(5), 4, 1, 0).chosen.peak_bytes;
  const std::int64_t one_stage = 2 * (2 + 4 + 12) * 1'000'000;
  ASSERT_LT(one_stage, peak);
  // Every worker guards a stage if it has room for two versions of it; owners need room for their second one.
  EXPECT_EQ(survives(one_stage - 1), -1);
  EXPECT_EQ(survives(one_stage), 0);
  EXPECT_EQ(survives(one_stage + owner_state - 1), 0);
  EXPECT_EQ(survives(8 * owner_state), 1);
}

TEST(Guards, CopiesAreKeptOnlyWhereThePlanHasRoomForThemAlsoWithSeveralGroups) {
  const ModelProfile profile = even_profile(4);
  const std::int64_t version = 14'000'000;  // weights and optimizer state of a block, and of a stage
  const std::int64_t peak = planned(profile, crew(8), 4, 2, 0).chosen.peak_bytes;
  EXPECT_TRUE(keeps_copies(planned(profile, crew(8), 4, 2, 1, peak + version).plan, 1));
  const Plan full = planned(profile, crew(8), 4, 2, 1, peak + version - 1).plan;
  EXPECT_FALSE(keeps_copies(full, 1));
  EXPECT_EQ(copy_bytes(full, profile, 1), 0);
  EXPECT_FALSE(keeps_copies(planned(profile, crew(8), 4, 2, 0).plan, 0)) << "nobody asked for any";
}

TEST(Guards, CopiesTakeOneVersionOnOwnersAndTwoOnGuards) {
  const ModelProfile profile = even_profile(4);
  const std::int64_t version = 14'000'000;
  const Plan guarded = planned(profile, crew(5), 4, 1, 1).plan;  // each worker owns a stage and guards another
  EXPECT_EQ(copy_bytes(guarded, profile, 1), 3 * version);
  EXPECT_EQ(copy_bytes(planned(profile, crew(8), 4, 2, 1).plan, profile, 1), version) << "groups guard each other";
  EXPECT_EQ(copy_bytes(guarded, profile, 0), 0);
}

// Stage by stage its owner and its guard: the loss of any of these pairs is one too many, and nothing less is.
TEST(Survival, EndsWithTheLossOfAStagesOwnerAndItsGuards) {
  const PlanReport report = planned(even_profile(4), crew(5), 4, 1, 1);
  const std::vector<WorkerId> lost = one_loss_too_many(report.plan);
  EXPECT_EQ(lost, (std::vector<WorkerId>{report.plan.workers[0], report.plan.guards[0][0]}));
  EXPECT_EQ(one_loss_too_many(planned(even_profile(4), crew(8), 4, 2, 1).plan).size(), 2U) << "both groups' owners";
}

TEST(Survival, CountsOnlyLossesAfterWhichAnotherPlanFits) {
  const ModelProfile profile = even_profile(4);
  // Two copies of each stage in both cases, but depth 2 needs two workers.
  EXPECT_EQ(planned(profile, crew(3), 2, 1, 1).chosen.survives->workers, 1);
  EXPECT_EQ(planned(profile, crew(2), 2, 1, 1).chosen.survives->workers, 0);
}

}  // namespace
}  // namespace everstep::scheduler
