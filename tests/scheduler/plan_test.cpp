#include "scheduler/plan.h"

#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

Plan shaped(ScheduleKind kind, int depth, int width, Cuts cuts) {
  Plan plan;
  plan.kind = kind;
  plan.depth = depth;
  plan.width = width;
  plan.pipelines = Placement::make(kind, depth)->pipelines();
  plan.window = 4 * depth * width;
  plan.cuts = std::move(cuts);
  return plan;
}

Plan seated(Plan plan, const ModelProfile& profile, const std::vector<WorkerInfo>& workers,
            const Plan* previous = nullptr) {
  seat_workers(plan, profile, workers, previous);
  return plan;
}

std::vector<WorkerInfo> without(std::vector<WorkerInfo> workers, std::size_t index) {
  workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(index));
  return workers;
}

// A record that is not honest may say anything.
TEST(CheckPlan, RefusesWhatNoScheduleCanBeMadeFrom) {
  const Plan good = seated(shaped(ScheduleKind::kClockwork, 4, 2, {0, 2, 4, 6, 8}), even_profile(8), crew(8));
  ASSERT_TRUE(check(good)) << check(good).error();
  const auto refused = [&](int Plan::*field, int value) {
    Plan plan = good;
    plan.*field = value;
    return !check(plan).ok();
  };
  int largest = 0;
  while (!refused(&Plan::lag, largest + 1)) ++largest;
  EXPECT_GT(largest, 0);
  Plan latest = good;
  latest.lag = largest;
  EXPECT_TRUE(make_schedule(request_of(latest, 0, 3)).ok());
  ++latest.lag;
  EXPECT_FALSE(make_schedule(request_of(latest, 0, 3)).ok());
  EXPECT_TRUE(refused(&Plan::lag, std::numeric_limits<int>::max()));
  EXPECT_TRUE(refused(&Plan::lag, -1));
  EXPECT_TRUE(refused(&Plan::pipelines, 3));
  EXPECT_TRUE(refused(&Plan::window, 7));
  EXPECT_TRUE(refused(&Plan::preload, 3));
  EXPECT_TRUE(refused(&Plan::depth, std::numeric_limits<int>::max()));
  Plan drained = good;
  drained.kind = ScheduleKind::kClockworkSync;
  EXPECT_TRUE(check(drained).ok());
  drained.lag = 1;
  EXPECT_FALSE(check(drained).ok()) << "its updates have nothing to wait for";
}

TEST(SeatWorkers, SeatsEachWorkerOnceAndNamesTheRestSpares) {
  const ModelProfile profile = even_profile(8);
  const Plan plan = seated(shaped(ScheduleKind::kAmdp, 4, 1, {0, 2, 4, 6, 8}), profile, crew(6));
  std::set<WorkerId> all(plan.workers.begin(), plan.workers.end());
  all.insert(plan.spares.begin(), plan.spares.end());
  EXPECT_EQ(plan.workers.size(), 4U);
  EXPECT_EQ(plan.spares.size(), 2U);
  EXPECT_EQ(all.size(), 6U);
}

TEST(SeatWorkers, PutsNeighboursOfOneHostNextToEachOther) {
  const ModelProfile profile = even_profile(8);
  const auto workers = crew(4, 2);
  const Plan plan = seated(shaped(ScheduleKind::kAmdp, 4, 1, {0, 2, 4, 6, 8}), profile,
                           {workers[3], workers[0], workers[2], workers[1]});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(plan.workers[i], workers[i].id);
}

TEST(SeatWorkers, LeavesEverybodyInPlaceWhenTheShapeStays) {
  const ModelProfile profile = random_profile(9, 3);
  const auto workers = crew(8);
  const Plan before = seated(shaped(ScheduleKind::kAmdp, 4, 2, {0, 2, 4, 6, 9}), profile, workers);
  const Plan after = seated(shaped(ScheduleKind::kAmdp, 4, 2, {0, 2, 4, 6, 9}), profile, workers, &before);
  EXPECT_EQ(moved_bytes(profile, &before, after), 0);
}

TEST(SeatWorkers, MovesNothingWhenAGroupGoesAway) {
  const ModelProfile profile = random_profile(9, 4);
  const auto workers = crew(8);
  const Plan before = seated(shaped(ScheduleKind::kAmdp, 4, 2, {0, 2, 4, 6, 9}), profile, workers);
  for (std::size_t lost = 0; lost < 8; ++lost) {
    const Plan after =
        seated(shaped(ScheduleKind::kAmdp, 4, 1, {0, 2, 4, 6, 9}), profile, without(workers, lost), &before);
    EXPECT_EQ(moved_bytes(profile, &before, after), 0) << "without worker " << lost;
    EXPECT_EQ(after.spares.size(), 3U);
  }
}

TEST(MovedBytes, CountsWeightsForEveryHolderAndOptimizerStateForTheOwner) {
  const ModelProfile profile = even_profile(4, 1'000'000, 1000);
  const Plan plan = seated(shaped(ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3, 4}), profile, crew(4));
  EXPECT_EQ(moved_bytes(profile, nullptr, plan), 4 * (2 * 1000 * 2 + 1000 * 12)) << "two stages held, one owned, each";
}

TEST(MovedBytes, CountsOnlyWhatAWorkerDidNotHold) {
  // Two workers with half of the blocks each become one that holds all.
  const ModelProfile profile = even_profile(2, 1'000'000, 1000);
  const auto workers = crew(2);
  const Plan before = seated(shaped(ScheduleKind::kOneFOneB, 2, 1, {0, 1, 2}), profile, workers);
  const Plan after = seated(shaped(ScheduleKind::kOneFOneB, 1, 1, {0, 2}), profile, without(workers, 0), &before);
  EXPECT_EQ(moved_bytes(profile, &before, after), 1000 * (2 + 12));
}

TEST(MovedBytes, LetsAGuardTakeOverWithoutMovingAnything) {
  const ModelProfile profile = even_profile(2, 1'000'000, 1000);
  const auto workers = crew(3);
  Plan before = seated(shaped(ScheduleKind::kOneFOneB, 2, 1, {0, 1, 2}), profile, workers);
  ASSERT_EQ(before.spares, std::vector<WorkerId>{workers[2].id});
  before.guards = {{workers[2].id}, {}};
  const Plan after = seated(shaped(ScheduleKind::kOneFOneB, 2, 1, {0, 1, 2}), profile, without(workers, 0), &before);
  EXPECT_EQ(moved_bytes(profile, &before, after), 0);
}

// All ways to seat workers, tried one after the other.
std::int64_t fewest_moved(const ModelProfile& profile, const Plan& before, Plan after,
                          const std::vector<WorkerInfo>& workers) {
  std::vector<WorkerId> order;
  for (const WorkerInfo& worker : workers) order.push_back(worker.id);
  std::sort(order.begin(), order.end());
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  do {
    std::copy_n(order.begin(), after.workers.size(), after.workers.begin());
    fewest = std::min(fewest, moved_bytes(profile, &before, after));
  } while (std::next_permutation(order.begin(), order.end()));
  return fewest;
}

TEST(SeatWorkers, MovesNearlyAsLittleAsTheBestSeatingThereIs) {
  const auto placement_cuts = [](int depth) {
    Cuts cuts;
    for (int stage = 0; stage <= depth; ++stage) cuts.push_back(stage * 8 / depth);
    return cuts;
  };
  double sum = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const ModelProfile profile = random_profile(8, seed);
    for (const int from : {2, 3, 4, 5, 6}) {
      for (const int to : {2, 3, 4, 5}) {
        const auto kind_at = [](int depth) {
          return is_amdp_depth(depth) ? ScheduleKind::kAmdp : ScheduleKind::kOneFOneB;
        };
        const auto workers = crew(6);
        const Plan before = seated(shaped(kind_at(from), from, 1, placement_cuts(from)), profile, workers);
        const Plan after =
            seated(shaped(kind_at(to), to, 1, placement_cuts(to)), profile, without(workers, 1), &before);
        const double moved = static_cast<double>(moved_bytes(profile, &before, after));
        const double best = static_cast<double>(fewest_moved(profile, before, after, without(workers, 1)));
        EXPECT_LE(moved, 1.35 * best) << from << " -> " << to << " seed " << seed;
        sum += moved / std::max(1.0, best);
        ++cases;
      }
    }
  }
  EXPECT_LE(sum / cases, 1.05);
}

}  // namespace
}  // namespace everstep::scheduler
