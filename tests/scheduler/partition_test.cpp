#include "scheduler/partition.h"

#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

Tick stage_time(const ModelProfile& profile, const Cuts& cuts, int stage) {
  Tick time = 0;
  for (int block = cuts[stage]; block < cuts[stage + 1]; ++block) {
    time += profile.blocks[block].forward + profile.blocks[block].backward;
  }
  return time;
}

Tick slowest_stage(const ModelProfile& profile, const Cuts& cuts) {
  Tick slowest = 0;
  for (int stage = 0; stage + 1 < static_cast<int>(cuts.size()); ++stage) {
    slowest = std::max(slowest, stage_time(profile, cuts, stage));
  }
  return slowest;
}

Tick busiest_device(const ModelProfile& profile, const Cuts& cuts, const Placement& placement) {
  Tick busiest = 0;
  for (int device = 0; device < placement.depth(); ++device) {
    Tick work = 0;
    for (const int stage : placement.stages_on(device)) work += stage_time(profile, cuts, stage);
    busiest = std::max(busiest, work);
  }
  return busiest;
}

TEST(Partition, CoversEveryBlockOnceWithNoEmptyStage) {
  for (int depth = 1; depth <= 12; ++depth) {
    for (int blocks = depth; blocks <= 20; ++blocks) {
      for (const ScheduleKind kind : {ScheduleKind::kAmdp, ScheduleKind::kOneFOneB, ScheduleKind::kTwoDirections}) {
        const auto placement = Placement::make(kind, depth);
        if (!placement) continue;
        for (const Balance balance : {Balance::kTime, Balance::kMemory}) {
          const Cuts cuts = partition_blocks(random_profile(blocks, 100 * depth + blocks), *placement, balance);
          ASSERT_EQ(cuts.size(), static_cast<std::size_t>(depth) + 1);
          EXPECT_EQ(cuts.front(), 0);
          EXPECT_EQ(cuts.back(), blocks);
          EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end(), std::less_equal<>())) << "an empty stage";
        }
      }
    }
  }
}

TEST(Partition, WithOnePipelineMakesTheSlowestStageAsFastAsBruteForceDoes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const int blocks = 3 + static_cast<int>(seed % 8);
    const ModelProfile profile = random_profile(blocks, seed);
    for (int depth = 1; depth <= std::min(blocks, 5); ++depth) {
      const auto placement = Placement::make(ScheduleKind::kOneFOneB, depth);
      Tick best = slowest_stage(profile, {0, blocks});
      for_all_cuts(blocks, depth, [&](const Cuts& cuts) { best = std::min(best, slowest_stage(profile, cuts)); });
      EXPECT_EQ(slowest_stage(profile, partition_blocks(profile, *placement, Balance::kTime)), best)
          << "seed " << seed << " depth " << depth;
    }
  }
}

TEST(Partition, WithSeveralPipelinesComesCloseToTheBestBusiestDevice) {
  double worst = 0;
  double sum = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const int blocks = 10;
    const ModelProfile profile = random_profile(blocks, seed);
    for (const int depth : {4, 8}) {
      const auto placement = Placement::make(ScheduleKind::kAmdp, depth);
      Tick best = busiest_device(profile, partition_blocks(profile, *placement, Balance::kTime), *placement);
      const double found = static_cast<double>(best);
      for_all_cuts(blocks, depth,
                   [&](const Cuts& cuts) { best = std::min(best, busiest_device(profile, cuts, *placement)); });
      worst = std::max(worst, found / static_cast<double>(best));
      sum += found / static_cast<double>(best);
      ++cases;
    }
  }
  EXPECT_LT(worst, 1.25);
  EXPECT_LT(sum / cases, 1.06);
}

TEST(Partition, GivesStagesBeforeAHeavyHeadMoreBlocksWhereOnlyTheSumCounts) {
  // Devices 0 and 3 work on stages 0 and 3; the head on stage 3 is paid for by a short stage 0.
  ModelProfile profile = even_profile(13);
  profile.blocks.back().forward *= 5;
  profile.blocks.back().backward *= 5;
  const auto placement = Placement::make(ScheduleKind::kAmdp, 4);
  const Cuts cuts = partition_blocks(profile, *placement, Balance::kTime);
  EXPECT_EQ(busiest_device(profile, cuts, *placement), 9 * 3'000'000);
}

TEST(Partition, BalancesMemoryWhenAskedTo) {
  ModelProfile profile = even_profile(8);
  profile.blocks[0].parameters *= 7;
  const auto placement = Placement::make(ScheduleKind::kOneFOneB, 2);
  EXPECT_EQ(partition_blocks(profile, *placement, Balance::kTime), (Cuts{0, 4, 8}));
  EXPECT_EQ(partition_blocks(profile, *placement, Balance::kMemory), (Cuts{0, 1, 8}));
}

}  // namespace
}  // namespace everstep::scheduler
