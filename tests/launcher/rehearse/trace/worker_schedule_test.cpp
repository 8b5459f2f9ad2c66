#include "launcher/rehearse/trace/worker_schedule.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>

#include "launcher/cli/files.h"
#include "launcher/rehearse/trace/trace_request.h"

namespace everstep::launcher {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kHour = 3'600'000;

TraceSlice slice_with(int nodes, std::vector<NodeInstant> instants) {
  TraceSlice slice{0, 1000, {}, std::move(instants)};
  for (int i = 0; i < nodes; ++i) slice.nodes.push_back("n" + std::to_string(i));
  return slice;
}

NodeTrace public_trace() {
  const auto text = read_file(EVERSTEP_SOURCE_DIR "/examples/traces/bamboo/p3-trace.csv", scheduler::kMaxTraceBytes);
  EXPECT_TRUE(text.ok());
  auto trace = scheduler::parse_node_changes(*text);
  EXPECT_TRUE(trace.ok());
  return *trace;
}

TEST(WorkerSchedule, IsTheTraceItselfIfItHasFewNodes) {
  const TraceSlice slice = slice_with(3, {{10, {"n1"}, {"x"}}, {20, {"n0", "x"}, {}}, {30, {}, {"y", "z"}}});
  const WorkerSchedule schedule = map_to_workers(slice, 8);
  EXPECT_EQ(schedule.first_workers, 3);
  EXPECT_THAT(schedule.changes,
              ElementsAre(WorkerChange{10, {1}, {3}}, WorkerChange{20, {0, 3}, {}}, WorkerChange{30, {}, {4, 5}}));
  EXPECT_EQ(schedule.final_workers(), 3);
}

TEST(WorkerSchedule, KillsTheWorkerOfTheSameAge) {
  const TraceSlice oldest = slice_with(8, {{10, {"n0"}, {}}});
  EXPECT_THAT(map_to_workers(oldest, 4).changes, ElementsAre(WorkerChange{10, {0}, {}}));
  const TraceSlice newest = slice_with(8, {{10, {"n7"}, {}}});
  EXPECT_THAT(map_to_workers(newest, 4).changes, ElementsAre(WorkerChange{10, {3}, {}}));
}

TEST(WorkerSchedule, LetsNoLossGoUnseenAndStaysWithinOneOfItsShare) {
  // One node after the other: each kills, and where that took more than the nodes did, another starts.
  const TraceSlice slice =
      slice_with(8, {{10, {"n7"}, {}}, {20, {"n6"}, {}}, {30, {"n5"}, {}}, {40, {}, {"x"}}, {50, {}, {"y", "z"}}});
  const WorkerSchedule schedule = map_to_workers(slice, 4);
  EXPECT_EQ(schedule.losses(), 3);
  EXPECT_THAT(schedule.changes,
              ElementsAre(WorkerChange{10, {3}, {}}, WorkerChange{20, {2}, {}}, WorkerChange{30, {1}, {4}},
                          WorkerChange{40, {}, {5}}, WorkerChange{50, {}, {6}}));
}

TEST(WorkerSchedule, HasNobodyWhileTheTraceHasNobody) {
  const WorkerSchedule schedule = map_to_workers(slice_with(2, {{10, {"n0", "n1"}, {}}, {30, {}, {"x"}}}), 1);
  EXPECT_THAT(schedule.changes, ElementsAre(WorkerChange{10, {0}, {}}, WorkerChange{30, {}, {1}}));
}

// Whatever the slice and the number of workers, of a real trace.
TEST(WorkerSchedule, KeepsNumberSimultaneityAndOrderOfAPublicTrace) {
  const NodeTrace trace = public_trace();
  for (const int most : {1, 4, 7, 16, 24, 64}) {
    for (std::int64_t from = 0; from + kHour <= duration_of(trace); from += kHour / 2) {
      const TraceSlice slice = slice_of(trace, from, kHour).value();
      const WorkerSchedule schedule = map_to_workers(slice, most);
      const double share = std::min(1.0, static_cast<double>(most) / slice.most_nodes());
      std::set<int> there;
      int next = 0;
      while (next < schedule.first_workers) there.insert(next++);
      auto nodes = static_cast<double>(slice.nodes.size());
      std::size_t losses = 0;
      auto change = schedule.changes.begin();
      for (const NodeInstant& instant : slice.instants) {
        nodes += static_cast<double>(instant.added.size()) - static_cast<double>(instant.removed.size());
        const bool is_here = change != schedule.changes.end() && change->time_ms == instant.time_ms;
        ASSERT_TRUE(is_here || instant.removed.empty()) << "a loss that nobody sees";
        if (!is_here) continue;
        const double wanted = std::ceil(static_cast<double>(instant.removed.size()) * share - 1e-9);
        EXPECT_GE(static_cast<double>(change->killed.size()), std::min(wanted, static_cast<double>(there.size())));
        EXPECT_EQ(change->killed.empty(), instant.removed.empty()) << "a kill that the trace does not have";
        losses += change->killed.empty() ? 0 : 1;
        for (const int worker : change->killed) EXPECT_EQ(there.erase(worker), 1U) << "killed, but not there";
        for (const int worker : change->started) {
          EXPECT_EQ(worker, next++) << "numbers follow each other";
          there.insert(worker);
        }
        EXPECT_LE(std::abs(static_cast<double>(there.size()) - nodes * share), 1 + 1e-9);
        EXPECT_LE(there.size(), static_cast<std::size_t>(most));
        ++change;
      }
      EXPECT_EQ(change, schedule.changes.end()) << "a change that the trace does not have";
      EXPECT_EQ(losses, static_cast<std::size_t>(slice.removals()));
      EXPECT_EQ(static_cast<int>(there.size()), schedule.final_workers());
      EXPECT_EQ(membership_of(schedule).changes(), static_cast<int>(schedule.changes.size()));
      EXPECT_EQ(membership_of(schedule).points.back().workers, schedule.final_workers());
    }
  }
}

TEST(WorkerSchedule, KnowsTheTwoHoursThatAreReported) {
  const NodeTrace trace = public_trace();
  const TraceSlice first = slice_of(trace, 0, kHour).value();
  EXPECT_EQ(first.instants.size(), 17U);
  EXPECT_EQ(first.removed(), 21);
  EXPECT_EQ(map_to_workers(first, 16).losses(), 7);
  const TraceSlice busiest = busiest_slice(trace, kHour).value();
  EXPECT_EQ(busiest.instants.size(), 25U);
  EXPECT_EQ(map_to_workers(busiest, 16).losses(), 13);
}

TEST(WorkerActions, AreScaledAndInOrder) {
  WorkerSchedule schedule{100'000, 2, {{10'000, {1}, {2}}, {50'000, {2}, {}}}};
  EXPECT_THAT(actions_of(schedule, 10, 0), ElementsAre(WorkerAction{kTicksPerSecond, ActionKind::kKill, 1},
                                                       WorkerAction{kTicksPerSecond, ActionKind::kStart, 2},
                                                       WorkerAction{5 * kTicksPerSecond, ActionKind::kKill, 2}));
}

TEST(WorkerActions, GiveNoticeButNotBeforeAWorkerIsThere) {
  WorkerSchedule schedule{100'000, 2, {{10'000, {1}, {2}}, {50'000, {2}, {}}}};
  EXPECT_THAT(actions_of(schedule, 10, 30), ElementsAre(WorkerAction{0, ActionKind::kAskToLeave, 1},
                                                        WorkerAction{kTicksPerSecond, ActionKind::kKill, 1},
                                                        WorkerAction{kTicksPerSecond, ActionKind::kStart, 2},
                                                        WorkerAction{2 * kTicksPerSecond, ActionKind::kAskToLeave, 2},
                                                        WorkerAction{5 * kTicksPerSecond, ActionKind::kKill, 2}));
  const auto long_before = actions_of(schedule, 10, 3600);
  EXPECT_EQ(long_before[2], (WorkerAction{kTicksPerSecond, ActionKind::kStart, 2}));
  EXPECT_EQ(long_before[3], (WorkerAction{kTicksPerSecond, ActionKind::kAskToLeave, 2}));
}

TEST(ScaledLimits, ShrinkWithTheTraceButForTheLease) {
  EXPECT_EQ(scaled_limits(1), (ScaledLimits{2, 30, 10}));
  EXPECT_EQ(scaled_limits(20), (ScaledLimits{0.1, 1.5, kShortestLease}));
}

TEST(TraceShapes, GiveEveryNumberOfWorkersAPlan) {
  EXPECT_EQ(trace_shapes(11), "2=2x1,3=3x1,4=4x1,5=5x1,6=3x2,7=7x1,8=4x2,9=3x3,10=5x2,11=5x2");
}

}  // namespace
}  // namespace everstep::launcher
