#include "scheduler/execution.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

// Forward 1, backward 2, and whatever a test adds.
struct FixedCosts {
  MessageCost link;
  Tick reduce_cost = 0;
  Tick update_cost = 0;

  Tick compute(int, const Op& op) const { return op.kind == OpKind::kForward ? 1 : 2; }
  MessageCost message(int, int, const Op&) const { return link; }
  Tick reduce(int) const { return reduce_cost; }
  Tick update() const { return update_cost; }
  Tick provisional() const { return reduce_cost + update_cost; }
};

OpSpan span_of(const Schedule& schedule, const Execution& execution, int worker, const Op& op) {
  const std::vector<Op>& ops = schedule.workers[worker];
  return execution.spans[worker].at(std::find(ops.begin(), ops.end(), op) - ops.begin());
}

Op op_of(std::string_view text) { return parse_op(text).value(); }

Schedule pair_of_devices(int window, int windows = 1) {
  return make_schedule(request_of(ScheduleKind::kOneFOneB, 2, 1, window, windows)).value();
}

TEST(Execution, RunsOpsAsSoonAsTheirInputsAreThere) {
  const Schedule schedule = pair_of_devices(2);
  const Execution execution = execute(schedule, FixedCosts{});
  EXPECT_FALSE(execution.hang);
  EXPECT_EQ(span_of(schedule, execution, 0, op_of("F0.0.1@0")), (OpSpan{1, 2}));
  EXPECT_EQ(span_of(schedule, execution, 1, op_of("F0.0.0@1")), (OpSpan{1, 2}));
  EXPECT_EQ(span_of(schedule, execution, 1, op_of("B0.0.0@1")), (OpSpan{2, 4}));
  EXPECT_EQ(span_of(schedule, execution, 0, op_of("B0.0.0@0")), (OpSpan{4, 6}));
  EXPECT_EQ(span_of(schedule, execution, 0, op_of("B0.0.1@0")), (OpSpan{7, 9}));
  EXPECT_EQ(span_of(schedule, execution, 0, op_of("R0@0")), (OpSpan{9, 9}));
  for (const int worker : {0, 1}) EXPECT_EQ(span_of(schedule, execution, worker, op_of("U0")), (OpSpan{9, 9}));
}

TEST(Execution, OccupiesALinkForTheTransferButNotForTheLatency) {
  const Schedule schedule = pair_of_devices(2);
  const Execution latency = execute(schedule, FixedCosts{{0, 10}});
  EXPECT_EQ(span_of(schedule, latency, 1, op_of("F0.0.0@1")).begin, 11);
  EXPECT_EQ(span_of(schedule, latency, 1, op_of("F0.0.1@1")).begin, 14);  // there since 12, but the worker was busy
  const Execution transfer = execute(schedule, FixedCosts{{10, 0}});
  EXPECT_EQ(span_of(schedule, transfer, 1, op_of("F0.0.0@1")).begin, 11);
  EXPECT_EQ(span_of(schedule, transfer, 1, op_of("F0.0.1@1")).begin, 21);  // ready at 2, link free at 11
}

TEST(Execution, ChargesNothingForAMessageToItself) {
  ScheduleRequest request = request_of(ScheduleKind::kInterleaved, 1, 1, 2, 1);
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(execute(schedule, FixedCosts{{100, 100}}).spans, execute(schedule, FixedCosts{}).spans);
}

TEST(Execution, LetsAllLeaveAnUpdateTogetherOnceTheReducesAreDone) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 4, 2, 8, 1)).value();
  const Execution execution = execute(schedule, FixedCosts{{}, 5, 7});
  for (int worker = 0; worker < 8; ++worker) {
    // Inner devices start to reduce stage 2 at 12 and stage 1 at 14: it has to wait until 17 and is done at 22.
    EXPECT_EQ(span_of(schedule, execution, worker, op_of("U0")), (OpSpan{22, 29})) << worker;
  }
}

TEST(Execution, RunsTheReducesOfAMirrorGroupOneAfterTheOther) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kInterleaved, 1, 1, 1, 1)).value();
  const Execution execution = execute(schedule, FixedCosts{{}, 10, 0});
  // Stage 1 is ready at 4 and takes until 14; stage 0, ready at 6, begins then.
  EXPECT_EQ(span_of(schedule, execution, 0, op_of("U0")).begin, 24);
}

TEST(Execution, LetsPipedreamUpdateEachDeviceWithItsReplicasOnly) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kPipedream2bw, 2, 2, 4, 2)).value();
  const Execution execution = execute(schedule, FixedCosts{});
  EXPECT_EQ(span_of(schedule, execution, 0, op_of("U0")), span_of(schedule, execution, 2, op_of("U0")));
  EXPECT_LT(span_of(schedule, execution, 1, op_of("U0")).begin, span_of(schedule, execution, 0, op_of("U0")).begin);
}

TEST(Execution, NamesTheOpThatHangsAndWhatItWaitsFor) {
  Schedule schedule = pair_of_devices(1 + 1);
  std::vector<Op>& ops = schedule.workers[0];
  std::rotate(ops.begin(), ops.begin() + 2, ops.begin() + 3);  // B0 before the forwards it needs
  const Execution execution = execute(schedule, FixedCosts{});
  ASSERT_TRUE(execution.hang);
  EXPECT_EQ(execution.hang->worker, 0);
  EXPECT_EQ(to_string(execution.hang->op), "B0.0.0@0");
  EXPECT_EQ(execution.hang->reason, "for B0.0.0@1 of worker 1, which waits at F0.0.0@1");
  EXPECT_TRUE(execution.spans[0].empty());
}

TEST(Execution, BlamesATensorRatherThanTheUpdateOthersAreStuckAt) {
  Schedule schedule = pair_of_devices(2);
  schedule.workers[0].insert(schedule.workers[0].begin(), op_of("U0"));
  schedule.workers[0].pop_back();
  const Execution execution = execute(schedule, FixedCosts{});
  ASSERT_TRUE(execution.hang);
  EXPECT_EQ(to_string(execution.hang->op), "F0.0.0@1");
  EXPECT_THAT(execution.hang->reason, HasSubstr("which waits at U0"));
}

TEST(Execution, SaysWhenTheProducerNeverRunsOrTheUpdateIsNeverReached) {
  Schedule schedule = pair_of_devices(2);
  schedule.workers[0].clear();
  EXPECT_THAT(execute(schedule, FixedCosts{}).hang->reason, HasSubstr("for F0.0.0@0 of worker 0, which never runs it"));
  schedule.workers[1] = {op_of("U0")};
  EXPECT_THAT(execute(schedule, FixedCosts{}).hang->reason, HasSubstr("never reach this update"));
}

// On big shapes, with random durations and delays: lists complete, a worker does one thing at a time, in order, nothing
// runs before its input ended, and updates are common.
TEST(Execution, RespectsInputsAndOrderUnderAnyDurationsAndDelays) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, 77);
    const int depth = 1 + static_cast<int>(random.below(0, 32));
    const std::vector<ScheduleKind> kinds = kinds_at(depth);
    const int width = 1 + static_cast<int>(random.below(2, 2));
    const int window = depth * width + static_cast<int>(random.below(3, depth * width));
    const ScheduleRequest request = request_of(kinds[random.below(1, kinds.size())], depth, width, window, 2);
    SCOPED_TRACE(describe(request) + " seed=" + std::to_string(seed));
    const Schedule schedule = make_schedule(request).value();
    const SeededCosts costs{seed};
    const Execution execution = execute(schedule, costs);
    ASSERT_FALSE(execution.hang);
    std::map<std::tuple<OpKind, int, std::int64_t, int, int, int>, Tick> ends;
    const auto name = [&](int worker, const Op& op, OpKind kind, int stage) {
      return std::tuple(kind, schedule.group_of(worker), op.window, op.round, op.minibatch, stage);
    };
    for (int worker = 0; worker < depth * width; ++worker) {
      for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
        const Op& op = schedule.workers[worker][i];
        ends[name(worker, op, op.kind, op.stage)] = execution.spans[worker].at(i).end;
      }
    }
    const int last = schedule.placement.stages() - 1;
    for (int worker = 0; worker < depth * width; ++worker) {
      Tick now = 0;
      for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
        const Op& op = schedule.workers[worker][i];
        const OpSpan& span = execution.spans[worker][i];
        ASSERT_GE(span.begin, now);
        now = span.end;
        if (!is_compute(op)) continue;
        ASSERT_EQ(span.end - span.begin, costs.compute(worker, op));
        const bool forward = op.kind == OpKind::kForward;
        const int from = forward ? op.stage - 1 : op.stage + 1;
        const Tick input = from >= 0 && from <= last ? ends.at(name(worker, op, op.kind, from)) : 0;
        ASSERT_GE(span.begin, input);
        ASSERT_TRUE(forward || span.begin >= ends.at(name(worker, op, OpKind::kForward, op.stage)));
      }
    }
  }
}

TEST(ComputeKeys, NumberEveryForwardDenselyAndOnce) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 2, 16, 2);
  request.first_window = 5;
  request.first_minibatch = 8;
  const Schedule schedule = make_schedule(request).value();
  const ComputeKeys keys(schedule);
  EXPECT_EQ(keys.size(), 24U * 4U);
  std::vector<int> hits(keys.size(), 0);
  for (int worker = 0; worker < 8; ++worker) {
    for (const Op& op : schedule.workers[worker]) {
      if (op.kind != OpKind::kForward) continue;
      ASSERT_TRUE(keys.contains(worker / 4, op));
      ++hits.at(keys.key(worker / 4, op));
    }
  }
  EXPECT_THAT(hits, ::testing::Each(1));
}

TEST(ComputeKeys, ContainNothingOutOfRange) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 1, 8, 2);
  request.first_window = 5;
  const ComputeKeys keys(make_schedule(request).value());
  constexpr int kHuge = std::numeric_limits<int>::max();
  constexpr std::int64_t kHugeWindow = std::numeric_limits<std::int64_t>::max();
  EXPECT_TRUE(keys.contains(0, Op{OpKind::kForward, 3, 3, 1, 6}));
  for (const Op& op :
       {Op{OpKind::kForward, 4, 0, 0, 5}, Op{OpKind::kForward, -1, 0, 0, 5}, Op{OpKind::kForward, 0, 4, 0, 5},
        Op{OpKind::kForward, 0, -1, 0, 5}, Op{OpKind::kForward, 0, 0, 2, 5}, Op{OpKind::kForward, 0, 0, -1, 5},
        Op{OpKind::kForward, 0, 0, 0, 4}, Op{OpKind::kForward, 0, 0, 0, 7}, Op{OpKind::kForward, 0, 0, 0, -1},
        Op{OpKind::kForward, kHuge, 0, 0, 5}, Op{OpKind::kForward, 0, kHuge, 0, 5},
        Op{OpKind::kForward, 0, 0, kHuge, 5}, Op{OpKind::kForward, 0, 0, 0, kHugeWindow}}) {
    EXPECT_FALSE(keys.contains(0, op)) << to_string(op);
  }
}

}  // namespace
}  // namespace everstep::scheduler
