#include "scheduler/orders/collectives.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

bool is_collective(const Op& op) { return op.kind == OpKind::kStartReduce || op.kind == OpKind::kCapture; }

// Only backwards and collectives, with stages: `B3@0 R@3 C0@1`; an op of round r > 0 gets r primes.
std::string ending_of(const std::vector<Op>& ops, std::int64_t window) {
  std::string text;
  for (const Op& op : ops) {
    if (op.window != window || op.kind == OpKind::kForward || op.kind == OpKind::kUpdate) continue;
    const std::string at = "@" + std::to_string(op.stage);
    text += text.empty() ? "" : " ";
    if (op.kind == OpKind::kBackward) text += short_form({op}) + at;
    if (op.kind == OpKind::kStartReduce) text += "R" + at;
    if (op.kind == OpKind::kCapture) text += "C" + std::to_string(op.round) + at;
  }
  return text;
}

std::vector<Op> without_collectives(std::vector<Op> ops) {
  std::erase_if(ops, is_collective);
  return ops;
}

TEST(Collectives, FollowTheLastBackwardOfTheirChunkInDescendingStages) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 8, 1, 8, 1)).value();
  EXPECT_EQ(ending_of(schedule.workers[0], 0), "B3@7 B7@7 R@7 B2@4 B1@3 B6@4 R@4 B5@3 R@3 B0@0 B4@0 R@0");
  EXPECT_EQ(ending_of(schedule.workers[1], 0), "B3@6 B2@5 B7@6 R@6 B6@5 R@5 B1@2 B0@1 B5@2 R@2 B4@1 R@1");
}

// Five minibatches on four devices: the low stages of one pipeline are ready before the high stages of the other, and a
// member that started them at once would meet its partners in another order.
TEST(Collectives, WaitForHigherStagesWhenAPartialRoundLetsALowOneFinishFirst) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 4, 1, 5, 1)).value();
  EXPECT_EQ(ending_of(schedule.workers[0], 0), "B1@3 B3@3 R@3 B0@0 B2@0 B0'@0 R@0");
  EXPECT_EQ(ending_of(schedule.workers[3], 0), "B0@3 B2@3 B1@0 B3@0 B0'@3 R@3 R@0");
  EXPECT_EQ(ending_of(schedule.workers[1], 0), "B1@2 B0@1 B3@2 R@2 B2@1 B0'@1 R@1");
  EXPECT_EQ(ending_of(schedule.workers[2], 0), "B0@2 B1@1 B2@2 B3@1 B0'@2 R@2 R@1");
}

TEST(Collectives, CaptureRoundsBeforeTheLastOneAndReduceAtTheEnd) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 1, 5, 1);
  request.capture_every_rounds = 1;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(ending_of(schedule.workers[0], 0), "B1@3 B3@3 C0@3 B0@0 B2@0 C0@0 R@3 B0'@0 R@0");
  EXPECT_EQ(ending_of(schedule.workers[3], 0), "B0@3 B2@3 C0@3 B1@0 B3@0 C0@0 B0'@3 R@3 R@0");
}

TEST(Collectives, CaptureAtTheStopInsteadOfReducing) {
  ScheduleRequest request = request_of(ScheduleKind::kOneFOneB, 1, 1, 5, 1);
  request.capture_every_rounds = 2;
  request.stop_after_rounds = 3;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(ending_of(schedule.workers[0], 0), "B0@0 B0'@0 C1@0 B0''@0 C2@0");
  request.stop_after_rounds = 4;
  EXPECT_EQ(ending_of(make_schedule(request).value().workers[0], 0), "B0@0 B0'@0 C1@0 B0''@0 B0'''@0 C3@0");
}

TEST(Collectives, StartAtOnceWhereAGroupHasNothingOfAWindow) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 2, 2, 4, 1);
  request.first_minibatch = 3;
  const Schedule schedule = make_schedule(request).value();
  EXPECT_EQ(ending_of(schedule.workers[0], 0), "B0@0 R@0");
  EXPECT_EQ(ending_of(schedule.workers[2], 0), "R@0");
}

TEST(Collectives, LeaveTheOrderOfTheOtherOpsAlone) {
  for (const int depth : {1, 2, 4, 6, 8}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      ScheduleRequest request = request_of(kind, depth, 1, 3 * depth - 1, 2);
      const Schedule bare = make_schedule(request).value();
      request.capture_every_rounds = 1;
      const Schedule capturing = make_schedule(request).value();
      for (int worker = 0; worker < depth; ++worker) {
        const std::vector<Op> ops = without_collectives(capturing.workers[worker]);
        EXPECT_EQ(ops, without_collectives(bare.workers[worker])) << describe(request);
        EXPECT_EQ(with_collectives(capturing, worker, ops), capturing.workers[worker]) << describe(request);
      }
    }
  }
}

// Nothing is held back: what stands right before a collective is the backward it waited for, or another collective.
TEST(Collectives, StartAsEarlyAsTheirOrderAllows) {
  for (const int depth : {1, 2, 3, 4, 6, 8, 12}) {
    for (const ScheduleKind kind : kinds_at(depth)) {
      for (int window = depth; window <= 3 * depth; ++window) {
        ScheduleRequest request = request_of(kind, depth, 1, window, 2);
        request.capture_every_rounds = window % 3;
        const Schedule schedule = make_schedule(request).value();
        for (const std::vector<Op>& ops : schedule.workers) {
          for (std::size_t i = 1; i < ops.size(); ++i) {
            if (!is_collective(ops[i]) || is_collective(ops[i - 1])) continue;
            const Op& before = ops[i - 1];
            ASSERT_TRUE(before.kind == OpKind::kBackward && before.stage == ops[i].stage &&
                        before.window == ops[i].window)
                << describe(request) << ": " << to_string(ops[i]) << " after " << to_string(before);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
