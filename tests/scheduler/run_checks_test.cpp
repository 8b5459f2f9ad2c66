#include "scheduler/run_checks.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/timeline.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

using Ran = std::vector<std::vector<Op>>;

Schedule schedule_of(int depth, int window, int windows) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, window, windows);
  request.capture_every_rounds = 1;
  return make_schedule(request).value();
}

Ran played(const Schedule& schedule) {
  return ops_as_run(schedule, time_schedule(schedule, TimingModel::uniform(schedule.placement.stages())).weights);
}

std::string verdict_on_run(const Schedule& schedule, const Ran& ran) {
  const Status status = validate_run(schedule, ran);
  return status ? "valid" : status.error().line();
}

auto find_kind(std::vector<Op>& ops, OpKind kind) {
  return std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; });
}

TEST(ValidateRun, AcceptsWhatTheTimelineDoes) {
  for (int depth = 1; depth <= 8; ++depth) {
    const Schedule schedule = schedule_of(depth, 2 * depth + 1, 3);
    EXPECT_EQ(verdict_on_run(schedule, played(schedule)), "valid");
  }
}

TEST(ValidateRun, AcceptsAListAsItStandsWhereBackwardsAreNotSplit) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kAmdp, 4, 1, 8, 2)).value();
  EXPECT_EQ(verdict_on_run(schedule, schedule.workers), "valid");
}

// Every chunk's sum must be complete when it is reduced or captured.
TEST(ValidateRun, RefusesGradientsThatComeAfterTheirReduceOrCapture) {
  const Schedule schedule = schedule_of(4, 8, 3);
  for (const OpKind closing : {OpKind::kStartReduce, OpKind::kCapture}) {
    for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
      Ran ran = played(schedule);
      std::vector<Op>& ops = ran[worker];
      const auto close = find_kind(ops, closing);
      ASSERT_NE(close, ops.end());
      ASSERT_NE(close, ops.begin());
      const auto last = std::prev(close);
      ASSERT_EQ(last->kind, OpKind::kBackwardWeights);
      ASSERT_EQ(last->stage, close->stage);
      const std::string late = to_string(*last);
      std::iter_swap(last, close);
      EXPECT_THAT(verdict_on_run(schedule, ran), HasSubstr(late + " of worker " + std::to_string(worker)));
      EXPECT_THAT(verdict_on_run(schedule, ran), HasSubstr("which needs it"));
    }
  }
}

TEST(ValidateRun, RefusesGradientsOutOfOrderTwiceOrNotAtAll) {
  const Schedule schedule = schedule_of(4, 8, 2);
  const Ran ran = played(schedule);
  Ran mutant = ran;
  const auto first = find_kind(mutant[1], OpKind::kBackwardWeights);
  const auto second =
      std::find_if(std::next(first), mutant[1].end(), [](const Op& op) { return op.kind == OpKind::kBackwardWeights; });
  std::iter_swap(first, second);
  EXPECT_THAT(verdict_on_run(schedule, mutant), HasSubstr("not the oldest"));
  mutant = ran;
  mutant[1].insert(find_kind(mutant[1], OpKind::kBackwardWeights), *find_kind(mutant[1], OpKind::kBackwardWeights));
  EXPECT_THAT(verdict_on_run(schedule, mutant), HasSubstr("not the oldest"));
  mutant = ran;
  mutant[1].erase(find_kind(mutant[1], OpKind::kBackwardWeights));
  EXPECT_NE(verdict_on_run(schedule, mutant), "valid");
  mutant = ran;
  mutant[1].pop_back();
  EXPECT_THAT(verdict_on_run(schedule, mutant), HasSubstr("did not run"));
}

TEST(ValidateRun, RefusesThreeThatWait) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kClockwork, 4, 1, 16, 1)).value();
  Ran ran = schedule.workers;
  for (std::vector<Op>& ops : ran) {
    std::vector<Op> late;
    for (const Op& op : ops) {
      if (op.kind == OpKind::kBackward) late.push_back(weights_of(op));
    }
    ops.insert(find_kind(ops, OpKind::kStartReduce), late.begin(), late.end());
  }
  EXPECT_THAT(verdict_on_run(schedule, ran), HasSubstr("another one waits"));
}

TEST(ValidateRun, RefusesAnotherOrderThanThatOfTheList) {
  const Schedule schedule = schedule_of(3, 6, 1);
  Ran ran = played(schedule);
  std::swap(ran[0][0], ran[0][1]);
  EXPECT_THAT(verdict_on_run(schedule, ran), HasSubstr("not the next of its list"));
  ran.pop_back();
  EXPECT_THAT(verdict_on_run(schedule, ran), HasSubstr("another number of workers"));
}

}  // namespace
}  // namespace everstep::scheduler
