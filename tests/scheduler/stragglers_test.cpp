#include "scheduler/stragglers.h"

#include <algorithm>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/partition.h"
#include "scheduler/planner.h"
#include "tests/scheduler/planning_support.h"

namespace everstep::scheduler {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

constexpr ScheduleKind kPlanned[] = {ScheduleKind::kAmdp, ScheduleKind::kOneFOneB, ScheduleKind::kTwoDirections};

std::vector<WorkerInfo> crew_with(const std::vector<double>& slowness) {
  std::vector<WorkerInfo> workers = crew(static_cast<int>(slowness.size()));
  for (std::size_t i = 0; i < slowness.size(); ++i) workers[i].slowness = slowness[i];
  return workers;
}

Slowness random_slowness(int devices, std::uint64_t seed) {
  const RandomStream random(seed, 2);
  Slowness slowness;
  for (int i = 0; i < devices; ++i) {
    const auto draw = static_cast<std::uint64_t>(i);
    slowness.push_back(random.below(draw, 2) == 0 ? 1.0 : 1.0 + static_cast<double>(random.below(draw + 100, 40)) / 10);
  }
  return slowness;
}

Tick slowest_device(const ModelProfile& profile, const Cuts& cuts, const Slowness& slowness) {
  Tick slowest = 0;
  for (int stage = 0; stage + 1 < static_cast<int>(cuts.size()); ++stage) {
    const StageCost cost = stage_cost(profile, cuts[stage], cuts[stage + 1]);
    slowest = std::max(slowest, slowed(cost.forward + cost.backward, slowness, stage));
  }
  return slowest;
}

TEST(PartitionForStragglers, WithOnePipelineMakesTheSlowestDeviceAsFastAsBruteForceDoes) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const int blocks = 3 + static_cast<int>(seed % 8);
    const ModelProfile profile = random_profile(blocks, seed);
    for (int depth = 1; depth <= std::min(blocks, 5); ++depth) {
      const auto placement = Placement::make(ScheduleKind::kOneFOneB, depth);
      const Slowness slowness = random_slowness(depth, seed);
      Tick best = std::numeric_limits<Tick>::max();
      for_all_cuts(blocks, depth,
                   [&](const Cuts& cuts) { best = std::min(best, slowest_device(profile, cuts, slowness)); });
      const Cuts cuts = partition_blocks(profile, *placement, Balance::kTime, slowness);
      // Forwards and backwards are rounded to ticks each.
      EXPECT_NEAR(static_cast<double>(slowest_device(profile, cuts, slowness)), static_cast<double>(best), 2)
          << "seed " << seed << " depth " << depth;
    }
  }
}

TEST(PartitionForStragglers, WithSeveralPipelinesComesCloseToTheBestRound) {
  double sum = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const ModelProfile profile = random_profile(10, seed);
    const auto placement = Placement::make(ScheduleKind::kAmdp, 4);
    const Slowness slowness = random_slowness(4, seed);
    const auto round = [&](const Cuts& cuts) { return estimated_round(profile, *placement, slowness, cuts); };
    const auto found = static_cast<double>(round(partition_blocks(profile, *placement, Balance::kTime, slowness)));
    Tick best = std::numeric_limits<Tick>::max();
    for_all_cuts(10, 4, [&](const Cuts& cuts) { best = std::min(best, round(cuts)); });
    sum += found / static_cast<double>(best);
    ++cases;
  }
  EXPECT_LT(sum / cases, 1.06);
}

TEST(PartitionForStragglers, IsThePlainOneWhereAllAreAlike) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const ModelProfile profile = random_profile(12, seed);
    for (const ScheduleKind kind : kPlanned) {
      const auto placement = Placement::make(kind, 4);
      const auto round = [&](const Slowness& slowness) {
        return estimated_round(profile, *placement, {},
                               partition_blocks(profile, *placement, Balance::kTime, slowness));
      };
      EXPECT_LE(round(Slowness(4, 1.0)), round({})) << seed;
    }
  }
}

TEST(Timeline, StretchesTheOpsOfASlowDeviceOnly) {
  ScheduleRequest request;
  request.kind = ScheduleKind::kOneFOneB;
  request.depth = 3;
  request.width = 2;
  request.window = 12;
  const auto schedule = make_schedule(request);
  TimingModel model = TimingModel::uniform(3, 10, 20);
  model.slowness = {1, 2.5, 1};
  const Timeline timeline = time_schedule(*schedule, model);
  for (std::size_t worker = 0; worker < timeline.spans.size(); ++worker) {
    const Tick factor = worker % 3 == 1 ? 25 : 10;
    for (std::size_t i = 0; i < timeline.spans[worker].size(); ++i) {
      const Op& op = schedule->workers[worker][i];
      if (!is_compute(op)) continue;
      const OpSpan& span = timeline.spans[worker][i];
      EXPECT_EQ(span.end - span.begin, op.kind == OpKind::kForward ? factor : 2 * factor);
    }
  }
}

// Nobody sits on a device that is planned to be faster than the worker is, and no spare is faster than one who works.
void expect_seated(const Plan& plan, const std::vector<WorkerInfo>& workers, const Slowness& slowness) {
  std::set<WorkerId> seen;
  double slowest_seated = 0;
  double fastest_spare = std::numeric_limits<double>::infinity();
  for (const WorkerInfo& worker : workers) {
    const auto seat = std::ranges::find(plan.workers, worker.id);
    if (seat == plan.workers.end()) {
      fastest_spare = std::min(fastest_spare, worker.slowness);
      EXPECT_NE(std::ranges::find(plan.spares, worker.id), plan.spares.end());
      continue;
    }
    seen.insert(worker.id);
    slowest_seated = std::max(slowest_seated, worker.slowness);
    EXPECT_LE(worker.slowness, slowness[(seat - plan.workers.begin()) % plan.depth]);
  }
  EXPECT_EQ(seen.size(), plan.workers.size());
  EXPECT_LE(slowest_seated, fastest_spare);
}

TEST(Seatings, CanAllBeSeated) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const RandomStream random(seed, 3);
    const ModelProfile profile = random_profile(8, seed);
    Plan plan;
    plan.depth = 1 + static_cast<int>(random.below(0, 4));
    plan.width = 1 + static_cast<int>(random.below(1, 3));
    const int spares = static_cast<int>(random.below(2, 3));
    const auto placement = placement_of(plan);
    const auto workers = crew_with(random_slowness(plan.depth * plan.width + spares, seed));
    plan.cuts = partition_blocks(profile, placement, Balance::kTime);
    Plan previous = plan;
    seat_workers(previous, profile, crew(static_cast<int>(workers.size())), nullptr);
    for (const Plan* before : {static_cast<const Plan*>(nullptr), static_cast<const Plan*>(&previous)}) {
      for (const Slowness& slowness : seatings(profile, placement, plan.width, workers, before)) {
        if (slowness.empty()) continue;
        seat_workers(plan, profile, workers, before, slowness);
        expect_seated(plan, workers, slowness);
        const Slowness actual = slowness_of(plan, workers);
        for (int device = 0; device < plan.depth; ++device) EXPECT_LE(actual[device], slowness[device]);
      }
    }
  }
}

TEST(Seatings, LeaveEverybodyInPlaceIfThatIsAsGood) {
  const ModelProfile profile = even_profile(9);
  PlanOptions options;
  options.kind = ScheduleKind::kOneFOneB;
  options.depth = 3;
  options.redundancy = 0;  // a guard has what it would need elsewhere
  options.previous = plan(profile, crew(3), options)->plan;
  const auto report = plan(profile, crew_with({1, 2, 1}), options);
  EXPECT_EQ(report->plan.workers, options.previous->workers);
  EXPECT_EQ(report->plan.cuts, (Cuts{0, 4, 5, 9}));
}

// The fastest of all: every kind, depth and width, every seat for the slow ones, every cut.
Tick fastest_of_all(const ModelProfile& profile, std::vector<WorkerInfo> workers, const PlanOptions& options) {
  const auto count = static_cast<int>(workers.size());
  const auto blocks = static_cast<int>(profile.blocks.size());
  std::ranges::sort(workers, {}, &WorkerInfo::slowness);
  Tick fastest = std::numeric_limits<Tick>::max();
  for (int depth = 1; depth <= std::min(count, blocks); ++depth) {
    for (const ScheduleKind kind : kPlanned) {
      const auto placement = Placement::make(kind, depth);
      if (!placement || (kind == ScheduleKind::kTwoDirections && is_amdp_depth(depth))) continue;
      for (int width = 1; depth * width <= std::min(count, options.window); ++width) {
        std::vector<double> order;
        for (int i = 0; i < depth * width; ++i) order.push_back(workers[i].slowness);
        do {
          PlanShape shape{kind, *placement, {}, {}, Slowness(depth, 0)};
          for (int i = 0; i < depth * width; ++i) {
            shape.slowness[i % depth] = std::max(shape.slowness[i % depth], order[i]);
          }
          for_all_cuts(blocks, depth, [&](const Cuts& cuts) {
            shape.cuts = cuts;
            if (window_time_bound(profile, options.hardware, shape, options.window, width) >= fastest) return;
            const auto steady = window_time(profile, options.hardware, shape, options.window, width, options.preload);
            fastest = std::min(fastest, steady.window);
          });
        } while (std::next_permutation(order.begin(), order.end()));
      }
    }
  }
  return fastest;
}

TEST(PlannerForStragglers, ComesCloseToTheFastestOfAll) {
  double worst = 0;
  double sum = 0;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const ModelProfile profile = random_profile(7, seed);
    for (const std::vector<double>& slowness :
         {std::vector<double>{1, 3, 1, 1}, {2, 1, 1}, {1, 1, 1, 6}, {1, 2, 4, 1}, {1.5, 1.5, 1, 1}}) {
      PlanOptions options;
      options.window = 12;
      options.clockwork = false;
      const auto workers = crew_with(slowness);
      const auto report = plan(profile, workers, options);
      ASSERT_TRUE(report.ok());
      const double ratio = static_cast<double>(report->chosen.window_time) /
                           static_cast<double>(fastest_of_all(profile, workers, options));
      EXPECT_GE(ratio, 1) << "the reference misses something";
      worst = std::max(worst, ratio);
      sum += ratio;
      ++cases;
    }
  }
  EXPECT_LT(worst, 1.25);
  EXPECT_LT(sum / cases, 1.08);
}

TEST(PlannerForStragglers, IsNeverSlowerThanOneThatDoesNotKnowOfThem) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const ModelProfile profile = random_profile(9, seed);
    const auto workers = crew_with(random_slowness(3 + static_cast<int>(seed % 6), seed));
    PlanOptions options;
    options.window = 16;
    const Plan blind = plan(profile, crew(static_cast<int>(workers.size())), options)->plan;
    const auto report = plan(profile, workers, options);
    const Tick time = window_time(profile, options.hardware, report->plan, workers);
    EXPECT_LE(static_cast<double>(time),
              kPlanTolerance * static_cast<double>(window_time(profile, options.hardware, blind, workers)));
    EXPECT_LE(time, report->chosen.window_time) << "seats are not slower than planned";
  }
}

TEST(PlannerForStragglers, GivesASlowWorkerLessToDo) {
  PlanOptions options;
  options.kind = ScheduleKind::kOneFOneB;
  options.depth = 4;
  const auto workers = crew_with({1, 1, 3, 1});
  const Plan made = plan(even_profile(20), workers, options)->plan;
  const auto device = std::ranges::find(made.workers, workers[2].id) - made.workers.begin();
  EXPECT_EQ(made.cuts[device + 1] - made.cuts[device], 2);
}

TEST(PlannerForStragglers, LeavesOneOutThatWouldOnlyHoldTheOthersUp) {
  PlanOptions options;
  options.window = 24;
  const auto workers = crew_with({1, 100, 1, 1});
  const Plan made = plan(even_profile(6), workers, options)->plan;
  EXPECT_THAT(made.spares, testing::Contains(workers[1].id));
}

TEST(MeasuredSlowness, ComparesEachWorkerWithWhatItsStagesCost) {
  ModelProfile profile = even_profile(4);
  profile.blocks[3].forward *= 4;  // a head
  Plan plan;
  plan.depth = 3;
  plan.cuts = {0, 2, 3, 4};
  plan.workers = {crew(3)[0].id, crew(3)[1].id, crew(3)[2].id};
  EXPECT_THAT(measured_slowness(plan, profile, {{6'000}, {3'000}, {6'000}}),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(1, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_THAT(measured_slowness(plan, profile, {{6'000}, {12'000}, {6'000}}),
              ElementsAre(DoubleNear(1, 1e-9), DoubleNear(4, 1e-9), DoubleNear(1, 1e-9)));
  EXPECT_THAT(measured_slowness(plan, profile, {{6'000}, {0}, {}}), ElementsAre(1, 0, 0)) << "not known";
  EXPECT_THAT(measured_slowness(plan, profile, {}), ElementsAre(0, 0, 0));
  profile.blocks[2].forward = profile.blocks[2].backward = 100;
  EXPECT_THAT(measured_slowness(plan, profile, {{6'000}, {12'000}, {6'000}}), ElementsAre(1, 0, 1)) << "nothing to do";
}

}  // namespace
}  // namespace everstep::scheduler
