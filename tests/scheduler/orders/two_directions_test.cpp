#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/orders/orders.h"
#include "scheduler/schedule.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

TEST(TwoDirections, SendsEvenMinibatchesUpAndOddOnesDown) {
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kTwoDirections, 2, 1, 4, 1)).value();
  for (int worker = 0; worker < 2; ++worker) {
    for (const Op& op : schedule.workers[worker]) {
      if (!is_compute(op)) continue;
      EXPECT_EQ(op.stage == 0, op.minibatch % 2 == worker) << to_string(op);
    }
  }
}

TEST(TwoDirections, LoadsMirrorDevicesEqually) {
  for (int depth = 2; depth <= 12; depth += 2) {
    const Schedule schedule = make_schedule(request_of(ScheduleKind::kTwoDirections, depth, 1, 2 * depth, 1)).value();
    for (int stage = 0; stage < depth; ++stage) {
      const auto ops_on = [&](int device) {
        const std::vector<Op>& ops = schedule.workers[device];
        return std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return is_compute(op) && op.stage == stage; });
      };
      EXPECT_EQ(ops_on(stage), 2 * depth);
      EXPECT_EQ(ops_on(depth - 1 - stage), 2 * depth);
    }
  }
}

TEST(FirstComeOrder, RunsEveryStepOnceAndForwardBeforeBackward) {
  for (int depth = 2; depth <= 16; depth += 2) {
    const Placement placement = Placement::make(ScheduleKind::kTwoDirections, depth).value();
    for (int minibatches = 0; minibatches <= 3 * depth; ++minibatches) {
      const auto orders = first_come_order(placement, minibatches, depth / 2 + 1);
      ASSERT_EQ(static_cast<int>(orders.size()), depth);
      std::vector<int> state(static_cast<std::size_t>(minibatches) * depth, 0);  // 0 untouched, 1 forward, 2 both
      for (int device = 0; device < depth; ++device) {
        for (const OrderStep& step : orders[device]) {
          ASSERT_EQ(placement.device_of(step.minibatch % 2, step.stage), device);
          int& at = state[static_cast<std::size_t>(step.minibatch) * depth + step.stage];
          ASSERT_EQ(at++, step.forward ? 0 : 1);
        }
      }
      EXPECT_EQ(std::count(state.begin(), state.end(), 2), static_cast<std::ptrdiff_t>(state.size()));
    }
  }
}

TEST(FirstComeOrder, FinishesTheBackwardsOfARoundBeforeThoseOfTheNext) {
  for (int depth = 2; depth <= 16; depth += 2) {
    const Placement placement = Placement::make(ScheduleKind::kTwoDirections, depth).value();
    for (const auto& order : first_come_order(placement, 4 * depth - 1, depth / 2 + 1)) {
      int round = 0;
      for (const OrderStep& step : order) {
        if (step.forward) continue;
        EXPECT_GE(step.minibatch / depth, round);
        round = step.minibatch / depth;
      }
    }
  }
}

TEST(FirstComeOrder, KeepsToTheLimitInFlight) {
  for (int depth = 2; depth <= 12; depth += 2) {
    const Placement placement = Placement::make(ScheduleKind::kTwoDirections, depth).value();
    for (int limit = 1; limit <= depth; ++limit) {
      const auto orders = first_come_order(placement, 3 * depth, limit);
      for (const auto& order : orders) {
        int in_flight = 0;
        for (const OrderStep& step : order) {
          if (step.stage == 0) in_flight += step.forward ? 1 : -1;
          EXPECT_LE(in_flight, limit);
        }
      }
    }
  }
}

}  // namespace
}  // namespace everstep::scheduler
