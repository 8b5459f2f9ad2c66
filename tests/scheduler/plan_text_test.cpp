#include "scheduler/plan_text.h"

#include <gtest/gtest.h>

namespace everstep::scheduler {
namespace {

// Any valid plan of the kind, a block per stage and one more in the last.
Plan plan_of(ScheduleKind kind, int depth, int width) {
  Plan plan;
  plan.kind = kind;
  plan.depth = depth;
  plan.width = width;
  plan.window = 2 * depth * width + 1;
  plan.preload = 1;
  const Placement placement = Placement::make(kind, depth).value();
  plan.pipelines = placement.pipelines();
  for (int stage = 0; stage < placement.stages(); ++stage) plan.cuts.push_back(stage);
  plan.cuts.push_back(placement.stages() + 1);
  plan.workers.resize(static_cast<std::size_t>(depth) * static_cast<std::size_t>(width));
  return plan;
}

TEST(PlanText, NamesAllThatDecidesOnVersions) {
  EXPECT_EQ(plan_text(plan_of(ScheduleKind::kAmdp, 4, 1)), "amdp D=4 P=2 W=1 M=9 preload=1 cuts=0,1,2,3,5");
}

TEST(PlanText, ReadsBackPlansOfEveryKind) {
  for (const ScheduleKind kind : all_schedule_kinds()) {
    for (const int depth : {2, 4, 8}) {
      const Plan plan = plan_of(kind, depth, 3);
      const auto read = parse_plan_text(plan_text(plan));
      ASSERT_TRUE(read.ok()) << read.error().line();
      EXPECT_EQ(*read, plan) << plan_text(plan);
    }
  }
}

TEST(PlanText, NamesPipelinesAndLagOfClockwork) {
  Plan plan = plan_of(ScheduleKind::kClockwork, 4, 1);
  plan.pipelines = 1;
  plan.lag = 3;
  EXPECT_EQ(plan_text(plan), "clockwork D=4 P=1 W=1 M=9 preload=1 lag=3 cuts=0,1,2,3,5");
  EXPECT_EQ(*parse_plan_text(plan_text(plan)), plan);
  EXPECT_EQ(request_of(plan).pipelines, 1);
  EXPECT_EQ(request_of(plan).lag, 3);
  for (const char* const text : {"clockwork D=4 P=1 W=1 M=9 preload=1 cuts=0,1,2,3,5",
                                 "clockwork D=4 P=3 W=1 M=9 preload=1 lag=0 cuts=0,1,2,3,5",
                                 "clockwork D=4 P=1 W=1 M=9 preload=1 lag=-1 cuts=0,1,2,3,5",
                                 "amdp D=4 P=2 W=1 M=9 preload=1 lag=0 cuts=0,1,2,3,5"}) {
    EXPECT_FALSE(parse_plan_text(text).ok()) << text;
  }
}

TEST(PlanText, ReadsBackTheChunksOfAnInterleavedPlan) {
  const auto read = parse_plan_text(plan_text(plan_of(ScheduleKind::kInterleaved, 2, 1)));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(std::ssize(read->cuts), 2 * request_of(*read).chunks_per_device + 1);
}

TEST(PlanText, RefusesWhatNoPlanIsWrittenAs) {
  for (const char* const text :
       {"", "amdp", "amdp D=4 P=2 W=1 M=16", "waves D=4 P=2 W=1 M=9 preload=1 cuts=0,1,2,3,5",
        "amdp D=4 P=2 W=1 M=9 preload=1 cuts=0,1,2,3", "amdp D=4 P=2 W=1 M=9 preload=1 cuts=0,1,2,2,5",
        "amdp D=4 P=2 W=1 M=9 preload=1 cuts=0,1,2,3,5,", "amdp D=4 P=2 W=1 M=9 preload=1 cuts=0,1,2,3,5 more",
        "amdp D=4 P=1 W=1 M=9 preload=1 cuts=0,1,2,3,5", "amdp D=4 P=2 W=0 M=9 preload=1 cuts=0,1,2,3,5",
        "amdp D=4 P=2 W=2000000000 M=9 preload=1 cuts=0,1,2,3,5", "amdp D=4 P=2 W=1 M=x preload=1 cuts=0,1,2,3,5"}) {
    const auto read = parse_plan_text(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace everstep::scheduler
