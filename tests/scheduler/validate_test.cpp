#include "scheduler/validate.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Op op_written(std::string_view text) { return parse_op(text).value(); }

Schedule schedule_of(ScheduleKind kind, int depth, int width, int window, int windows, int capture = 0) {
  ScheduleRequest request = request_of(kind, depth, width, window, windows);
  request.capture_every_rounds = capture;
  return make_schedule(request).value();
}

std::string verdict_on(const Schedule& schedule) {
  const Status status = validate(schedule);
  if (status) return "valid";
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message, StartsWith("invalid schedule: "));
  return status.error().line();
}

// Takes an op out of its list and puts it right before (after) another one.
void move_before(Schedule& schedule, int worker, std::string_view op, std::string_view target, int offset = 0) {
  std::vector<Op>& ops = schedule.workers[worker];
  ASSERT_EQ(std::erase(ops, op_written(op)), 1U) << op;
  const auto place = std::find(ops.begin(), ops.end(), op_written(target));
  ASSERT_NE(place, ops.end()) << target;
  ops.insert(place + offset, op_written(op));
}

void move_after(Schedule& schedule, int worker, std::string_view op, std::string_view target) {
  move_before(schedule, worker, op, target, 1);
}

// ---- the classic deadlocks ----

// Five minibatches on four devices, reduces started as soon as each chunk is done.
TEST(Validate, RefusesReducesThatMembersOfAMirrorGroupStartInDifferentOrders) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 5, 1);
  move_after(schedule, 3, "R0@0", "B0.0.3@0");
  EXPECT_THAT(verdict_on(schedule), AllOf(HasSubstr("R0@0 of worker 3 stands where R0@3 is due"), HasSubstr("orders")));
  schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 5, 1);
  move_after(schedule, 2, "R0@1", "B0.0.3@1");
  EXPECT_THAT(verdict_on(schedule), HasSubstr("R0@1 of worker 2 stands where R0@2 is due"));
}

TEST(Validate, RefusesReducesThatOneGroupStartsInAnotherOrder) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 2, 9, 1);
  ASSERT_EQ(verdict_on(schedule), "valid");
  move_before(schedule, 7, "R0@0", "R0@3");
  EXPECT_THAT(verdict_on(schedule), HasSubstr("R0@0 of worker 7 stands where R0@3 is due"));
}

// An inner device that enters the update before it sent its last forward, while an edge device needs that one first.
TEST(Validate, RefusesAnUpdateBeforeAForwardThatAnotherWorkerNeedsBeforeIt) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 4, 2);
  move_after(schedule, 0, "U0", "F1.0.3@3");
  ASSERT_EQ(verdict_on(schedule), "valid");
  move_before(schedule, 1, "U0", "F1.0.3@2");
  EXPECT_THAT(verdict_on(schedule),
              HasSubstr("F1.0.3@3 of worker 0 would hang, waiting for F1.0.3@2 of worker 1, which "
                        "waits at U0"));
}

TEST(Validate, RefusesTwoDevicesThatWaitForEachOther) {
  Schedule schedule = schedule_of(ScheduleKind::kOneFOneB, 2, 1, 2, 1);
  move_before(schedule, 0, "B0.0.0@0", "F0.0.1@0");
  ASSERT_EQ(verdict_on(schedule), "valid");
  move_before(schedule, 1, "F0.0.1@1", "F0.0.0@1");
  EXPECT_THAT(verdict_on(schedule),
              HasSubstr("B0.0.0@0 of worker 0 would hang, waiting for B0.0.0@1 of worker 1, which waits at F0.0.1@1"));
}

TEST(Validate, RefusesAForwardThatWaitsForALaterOpOfItsOwnWorker) {
  Schedule schedule = schedule_of(ScheduleKind::kInterleaved, 1, 1, 1, 1);
  move_before(schedule, 0, "F0.0.0@1", "F0.0.0@0");
  EXPECT_THAT(verdict_on(schedule), HasSubstr("F0.0.0@1 of worker 0 would hang, waiting for F0.0.0@0 of worker 0"));
}

// ---- one defect each ----

TEST(Validate, NamesABackwardBeforeItsForward) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 2);
  move_before(schedule, 2, "B1.1.3@1", "F1.1.3@1");
  EXPECT_THAT(verdict_on(schedule), HasSubstr("B1.1.3@1 of worker 2 comes before its forward"));
}

TEST(Validate, NamesAnOpOnTheWrongWorker) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 2, 8, 1);
  std::erase(schedule.workers[4], op_written("B0.0.0@0"));
  schedule.workers[0].push_back(op_written("B0.0.0@0"));  // the other group has a minibatch of that name, too
  EXPECT_THAT(verdict_on(schedule), HasSubstr("B0.0.0@0 of worker 0 stands there twice"));
  schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 4, 1);
  schedule.workers[1].push_back(op_written("F0.0.0@0"));
  EXPECT_THAT(verdict_on(schedule), HasSubstr("F0.0.0@0 of worker 1 does not belong there"));
  schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 4, 1);
  schedule.workers[1].push_back(op_written("R0@3"));
  EXPECT_THAT(verdict_on(schedule), HasSubstr("R0@3 of worker 1 does not belong there"));
}

TEST(Validate, NamesAMinibatchThatAPartialRoundDoesNotHave) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 5, 1);
  schedule.workers[3].push_back(op_written("F0.1.1@0"));
  EXPECT_THAT(verdict_on(schedule), HasSubstr("F0.1.1@0 of worker 3 does not belong there"));
}

TEST(Validate, NamesNumbersOutOfRangeHoweverLarge) {
  constexpr int kHuge = std::numeric_limits<int>::max();
  constexpr int kTiny = std::numeric_limits<int>::min();
  constexpr std::int64_t kHugeWindow = std::numeric_limits<std::int64_t>::max();
  for (const OpKind kind :
       {OpKind::kForward, OpKind::kBackward, OpKind::kStartReduce, OpKind::kCapture, OpKind::kUpdate}) {
    for (const Op& op :
         {Op{kind, 4, 0, 0, 0}, Op{kind, -1, 0, 0, 0}, Op{kind, kHuge, 0, 0, 0}, Op{kind, kTiny, 0, 0, 0},
          Op{kind, 0, 4, 0, 0}, Op{kind, 0, -1, 0, 0}, Op{kind, 0, kHuge, 0, 0}, Op{kind, 0, kTiny, 0, 0},
          Op{kind, 0, 0, 2, 0}, Op{kind, 0, 0, -1, 0}, Op{kind, 0, 0, kHuge, 0}, Op{kind, 0, 0, kTiny, 0},
          Op{kind, 0, 0, 0, 2}, Op{kind, 0, 0, 0, -1}, Op{kind, 0, 0, 0, kHugeWindow},
          Op{kind, kHuge, kHuge, kHuge, kHugeWindow}}) {
      for (const std::size_t place : {0, 7}) {
        Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 2);
        schedule.workers[0].insert(schedule.workers[0].begin() + place, op);
        EXPECT_THAT(verdict_on(schedule), HasSubstr(to_string(op) + " of worker 0 does not belong there"));
      }
    }
  }
}

TEST(Validate, RefusesFieldsThatAnOpDoesNotUse) {
  for (const Op& op :
       {Op{OpKind::kStartReduce, 3, 1, 0, 0}, Op{OpKind::kStartReduce, 3, 0, 1, 0}, Op{OpKind::kUpdate, 1, 0, 0, 0},
        Op{OpKind::kUpdate, 0, 1, 0, 0}, Op{OpKind::kUpdate, 0, 0, 1, 0}}) {
    Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 1);
    std::vector<Op>& ops = schedule.workers[0];
    const Op plain = op.kind == OpKind::kUpdate ? op_written("U0") : op_written("R0@3");
    std::replace(ops.begin(), ops.end(), plain, op);
    EXPECT_NE(verdict_on(schedule), "valid") << to_string(op);
  }
}

TEST(Validate, RefusesAnotherNumberOfWorkers) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 1);
  schedule.workers.pop_back();
  EXPECT_NE(verdict_on(schedule), "valid");
  schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 1);
  schedule.workers.emplace_back();
  EXPECT_NE(verdict_on(schedule), "valid");
  schedule.workers.back() = schedule.workers.front();
  EXPECT_NE(verdict_on(schedule), "valid");
  schedule.workers.clear();
  EXPECT_NE(verdict_on(schedule), "valid");
}

TEST(Validate, NamesTensorsThatALinkDeliversInAnotherOrder) {
  Schedule schedule = schedule_of(ScheduleKind::kGpipe, 2, 1, 2, 1);
  move_before(schedule, 1, "F0.0.1@1", "F0.0.0@1");
  EXPECT_THAT(verdict_on(schedule), HasSubstr("worker 1 expects F0.0.1@0 from worker 0, which sends F0.0.0@0 first"));
}

TEST(Validate, NamesTheForwardThatIsTooManyInFlight) {
  Schedule schedule = schedule_of(ScheduleKind::kOneFOneB, 2, 1, 4, 1);
  move_before(schedule, 0, "F0.1.0@0", "B0.0.0@0");
  EXPECT_THAT(verdict_on(schedule), AllOf(HasSubstr("F0.1.0@0 of worker 0 exceeds"), HasSubstr("2 at stage 0")));
}

TEST(Validate, KnowsTheStricterBoundOfPreloadOne) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 1, 8, 1);
  Schedule schedule = make_schedule(request).value();
  schedule.request.preload = 1;
  EXPECT_THAT(verdict_on(schedule), AllOf(HasSubstr("F0.1.2@0 of worker 0 exceeds"), HasSubstr("2 at stage 0")));
}

TEST(Validate, RefusesAReduceBeforeTheLastBackward) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 1);
  move_before(schedule, 0, "R0@3", "B0.1.3@3");
  EXPECT_THAT(verdict_on(schedule), AllOf(HasSubstr("U0"), HasSubstr("7 gradients of stage 3"), HasSubstr("has 8")));
}

TEST(Validate, NamesAnUpdateBeforeItsReduces) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 4, 2);
  move_before(schedule, 1, "U0", "R0@1");
  EXPECT_THAT(verdict_on(schedule), HasSubstr("U0 of worker 1 stands where R0@1 is due"));
}

TEST(Validate, NamesAMissingCollectiveOrUpdateAtTheEnd) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 4, 1);
  schedule.workers[2].pop_back();
  EXPECT_THAT(verdict_on(schedule), HasSubstr("worker 2 lacks U0"));
}

TEST(Validate, RefusesCapturesThatWereNotAskedFor) {
  Schedule schedule = schedule_of(ScheduleKind::kAmdp, 4, 1, 8, 1, 1);
  schedule.request.capture_every_rounds = 0;
  EXPECT_THAT(verdict_on(schedule), HasSubstr("C0.0@3 of worker 0 stands where R0@3 is due"));
}

TEST(Validate, RefusesACaptureTooLateOrTooEarly) {
  Schedule schedule = schedule_of(ScheduleKind::kOneFOneB, 2, 1, 6, 1, 1);
  ASSERT_EQ(verdict_on(schedule), "valid");
  move_after(schedule, 1, "C0.0@1", "B0.1.0@1");
  EXPECT_THAT(verdict_on(schedule), AllOf(HasSubstr("after round 0 of window 0"), HasSubstr("3 gradients of stage 1")));
  schedule = schedule_of(ScheduleKind::kOneFOneB, 2, 1, 6, 1, 1);
  move_before(schedule, 1, "C0.0@1", "B0.0.1@1");
  EXPECT_THAT(verdict_on(schedule), AllOf(HasSubstr("after round 0 of window 0"), HasSubstr("1 gradients of stage 1")));
}

TEST(InFlightLimits, AreThoseTheDesignPromises) {
  const auto limits = [](ScheduleKind kind, int depth, int preload) {
    ScheduleRequest request = request_of(kind, depth, 1, 2 * depth, 1);
    request.preload = preload;
    const InFlightLimits found = in_flight_limits(make_schedule(request).value());
    return std::pair(found.per_first_stage, found.per_device);
  };
  EXPECT_EQ(limits(ScheduleKind::kAmdp, 8, 2), std::pair(3, 8));
  EXPECT_EQ(limits(ScheduleKind::kAmdp, 8, 1), std::pair(2, 8));
  EXPECT_EQ(limits(ScheduleKind::kAmdp, 2, 2), std::pair(2, 2));
  EXPECT_EQ(limits(ScheduleKind::kAmdpSync, 4, 2), std::pair(3, 4));
  EXPECT_EQ(limits(ScheduleKind::kOneFOneB, 5, 2), std::pair(5, 5));
  EXPECT_EQ(limits(ScheduleKind::kPipedream2bw, 5, 2), std::pair(5, 5));
  EXPECT_EQ(limits(ScheduleKind::kGpipe, 5, 2), std::pair(10, 10));
}

}  // namespace
}  // namespace everstep::scheduler
