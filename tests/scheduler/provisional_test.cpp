#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "scheduler/plan_text.h"
#include "scheduler/timeline.h"
#include "scheduler/validate.h"
#include "scheduler/versions.h"
#include "tests/scheduler/support.h"

// The provisional step in a schedule: where sums are copied for it, and who reads what it makes.
namespace everstep::scheduler {
namespace {

using ::testing::HasSubstr;

// Every shape at which a window may begin before the update of the one before.
std::vector<ScheduleRequest> shapes(int deepest) {
  std::vector<ScheduleRequest> all;
  for (int depth = 1; depth <= deepest; ++depth) {
    for (const int width : {1, 2}) {
      if (is_amdp_depth(depth)) all.push_back(request_of(ScheduleKind::kAmdp, depth, width, 4 * depth * width, 3));
      for (const int pipelines : clockwork_pipelines(depth)) {
        for (const int lag : {0, depth}) {
          if (depth == 1 && lag == 0) continue;  // no window meets another
          ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, width, 5 * depth * width + 1, 3);
          request.pipelines = pipelines;
          request.lag = lag;
          all.push_back(request);
        }
      }
    }
  }
  return all;
}

TEST(Provisional, IsPossibleExactlyInItsRangeAtEveryShape) {
  int tried = 0;
  for (ScheduleRequest request : shapes(12)) {
    const ProvisionalRange range = provisional_range(request);
    ASSERT_FALSE(range.empty()) << describe(request);
    for (const int left_out : {range.fewest, range.fewest + 1, range.most}) {
      if (left_out > range.most) continue;
      request.provisional = left_out;
      const auto schedule = make_schedule(request);
      ASSERT_TRUE(schedule.ok()) << describe(request) << ": " << schedule.error().line();
      const Status status = validate(*schedule);
      ASSERT_TRUE(status.ok()) << describe(request) << ": " << status.error().line();
      ++tried;
    }
    request.provisional = range.most + 1;
    EXPECT_FALSE(make_schedule(request).ok()) << describe(request);
    request.provisional = range.fewest - 1;
    EXPECT_EQ(make_schedule(request).ok(), request.provisional == 0) << describe(request);
  }
  EXPECT_GT(tried, 100);
}

TEST(Provisional, IsRefusedWhereWindowsDoNotOverlap) {
  for (const ScheduleKind kind :
       {ScheduleKind::kOneFOneB, ScheduleKind::kClockworkSync, ScheduleKind::kAmdpSync, ScheduleKind::kPipedream2bw}) {
    ScheduleRequest request = request_of(kind, 4, 1, 16, 2);
    request.provisional = 2;
    const auto schedule = make_schedule(request);
    ASSERT_FALSE(schedule.ok());
    EXPECT_THAT(schedule.error().line(), HasSubstr("begin before the update of the one before"));
  }
}

TEST(Provisional, NeedsAWindowThatIsLargeEnough) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, 4, 1, 4, 2);
  EXPECT_TRUE(provisional_range(request).empty());
  request.provisional = 1;
  const auto schedule = make_schedule(request);
  ASSERT_FALSE(schedule.ok());
  EXPECT_THAT(schedule.error().line(), HasSubstr("more minibatches per update"));
}

TEST(Provisional, RangesAreThoseOfTheDesign) {
  const auto range_of = [](ScheduleKind kind, int depth, int pipelines, int window) {
    ScheduleRequest request = request_of(kind, depth, 1, window, 1);
    request.pipelines = pipelines;
    return provisional_range(request);
  };
  EXPECT_EQ(range_of(ScheduleKind::kAmdp, 4, 0, 16).fewest, 1);
  EXPECT_EQ(range_of(ScheduleKind::kAmdp, 4, 0, 16).most, 3);
  EXPECT_EQ(range_of(ScheduleKind::kClockwork, 4, 2, 16).fewest, 1);
  EXPECT_EQ(range_of(ScheduleKind::kClockwork, 4, 2, 16).most, 7);
  EXPECT_EQ(range_of(ScheduleKind::kClockwork, 8, 4, 32).fewest, 1);
  EXPECT_EQ(range_of(ScheduleKind::kClockwork, 7, 1, 16).fewest, 6);
  EXPECT_TRUE(range_of(ScheduleKind::kClockwork, 1, 1, 16).empty()) << "nothing runs before the update";
}

// Where the design says that they are: all that a window runs before the update, unless it began drained.
TEST(Provisional, WeightsAreReadUntilTheUpdateAndNeverAfterADrain) {
  for (ScheduleRequest request : shapes(6)) {
    request.provisional = provisional_range(request).fewest;
    request.windows = 4;
    request.flush_after = {1};
    const Schedule schedule = make_schedule(request).value();
    const VersionTable table = trace_versions(schedule);
    std::map<std::int64_t, int> read;
    for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
      std::int64_t updates = 0;
      for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
        const Op& op = schedule.workers[worker][i];
        if (op.kind == OpKind::kUpdate) ++updates;
        const bool drained = op.window == 0 || op.window == 2;
        const bool expected = is_compute(op) && op.window == updates + 1 && !drained;
        ASSERT_EQ(table.provisional[worker][i], expected) << describe(request) << " " << to_string(op);
        if (expected) ++read[op.window];
      }
    }
    EXPECT_EQ(read.size(), 2) << describe(request);
  }
}

TEST(Provisional, SumsHoldTheRoundsBeforeThoseLeftOut) {
  for (ScheduleRequest request : shapes(6)) {
    request.provisional = provisional_range(request).fewest;
    const Schedule schedule = make_schedule(request).value();
    const int rounds = (request.window + super_round_size(request) - 1) / super_round_size(request);
    const int expected = (rounds - request.provisional) * super_round_size(request);
    std::map<std::pair<std::int64_t, int>, int> counted;  // by window and stage
    for (const std::vector<Op>& ops : schedule.workers) {
      std::map<std::pair<std::int64_t, int>, int> here;
      for (const Op& op : ops) {
        if (op.kind == OpKind::kBackward) ++here[{op.window, op.stage}];
        if (op.kind == OpKind::kProvisional) counted[{op.window, op.stage}] += here[{op.window, op.stage}];
      }
    }
    EXPECT_EQ(provisional_minibatches(request), expected) << describe(request);
    ASSERT_EQ(std::ssize(counted), std::ptrdiff_t{3} * schedule.placement.stages()) << describe(request);
    for (const auto& [key, count] : counted) {
      EXPECT_EQ(count, expected) << describe(request) << " window " << key.first << " stage " << key.second;
    }
  }
}

TEST(Provisional, CountsWhatWasSummedBeforeAResumeInsideItsWindow) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, 4, 1, 16, 2);
  request.provisional = 2;
  request.first_minibatch = 6;  // five rounds are left
  const Schedule schedule = make_schedule(request).value();
  ASSERT_TRUE(validate(schedule));
  EXPECT_EQ(schedule.provisional_round(0), 2);
  EXPECT_EQ(provisional_minibatches(request), 12);
  request.first_minibatch = 12;  // two
  const Schedule short_one = make_schedule(request).value();
  ASSERT_TRUE(validate(short_one));
  EXPECT_EQ(short_one.provisional_round(0), std::nullopt);
  EXPECT_EQ(provisional_minibatches(request), std::nullopt);
  EXPECT_FALSE(short_one.starts_provisional(1));
}

// A worker that is told to stop has run a part of the list that a schedule made for that stop has.
TEST(Provisional, CopiesStandWhereTheyStandWhetherOrNotAnotherWindowFollows) {
  for (ScheduleRequest request : shapes(4)) {
    request.provisional = provisional_range(request).fewest;
    const Schedule three = make_schedule(request).value();
    request.windows = 2;
    const Schedule two = make_schedule(request).value();
    for (std::size_t worker = 0; worker < two.workers.size(); ++worker) {
      std::vector<Op> left = three.workers[worker];
      std::erase_if(left, [](const Op& op) { return op.window == 2; });
      EXPECT_EQ(two.workers[worker], left) << describe(request) << " worker " << worker;
    }
    for (int stop = 1; stop < two.rounds_in(two.slices[1]); ++stop) {
      request.stop_after_rounds = stop;
      const Schedule stopped = make_schedule(request).value();
      const Status status = validate(stopped);
      ASSERT_TRUE(status.ok()) << describe(request) << ": " << status.error().line();
      for (std::size_t worker = 0; worker < two.workers.size(); ++worker) {
        const auto copies = [](std::vector<Op> ops, int rounds) {
          std::erase_if(ops, [&](const Op& op) {
            const bool belongs = op.kind == OpKind::kProvisional || op.kind == OpKind::kTrialStep;
            return !belongs || (op.window == 1 && op.round >= rounds);
          });
          return ops;
        };
        const int rounds = stopped.rounds_in(stopped.slices[1]);
        EXPECT_EQ(copies(stopped.workers[worker], rounds), copies(two.workers[worker], rounds)) << describe(request);
      }
    }
  }
}

TEST(Provisional, WeightsOfALiveCheckpointAreNotMadeHere) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, 4, 1, 16, 3);
  request.provisional = 2;
  request.first_minibatch = 16;
  const Schedule schedule = make_schedule(request).value();
  ASSERT_TRUE(validate(schedule));
  EXPECT_FALSE(schedule.starts_provisional(1));
  EXPECT_TRUE(schedule.starts_provisional(2));
}

TEST(Provisional, IsPartOfTheTextOfSchedulesAndPlans) {
  const Schedule schedule = schedule_with_step(ScheduleKind::kClockwork, 4, 2, 16, 2, 2);
  const auto again = parse_schedule(to_string(schedule));
  ASSERT_TRUE(again.ok()) << again.error().line();
  EXPECT_EQ(again->request, schedule.request);
  EXPECT_EQ(again->workers, schedule.workers);
  for (const std::string text : {"clockwork D=4 P=2 W=1 M=16 preload=2 lag=0 provisional=2 cuts=0,1,2,3,4",
                                 "amdp D=4 P=2 W=1 M=16 preload=2 provisional=1 cuts=0,1,2,3,4"}) {
    const auto plan = parse_plan_text(text);
    ASSERT_TRUE(plan.ok()) << plan.error().line();
    EXPECT_EQ(plan_text(*plan), text);
    EXPECT_GT(request_of(*plan).provisional, 0);
  }
  EXPECT_FALSE(parse_plan_text("amdp D=4 P=2 W=1 M=16 preload=2 provisional=0 cuts=0,1,2,3,4").ok());
}

// ---- time ----

// In ticks, if sums and weights take `update` of them on their way, too.
Tick window_of(int depth, int pipelines, int provisional, Tick update) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, 4 * depth, 3);
  request.pipelines = pipelines;
  request.provisional = provisional;
  TimingModel model = TimingModel::uniform(depth, 2, 4);
  model.update = 0;
  for (StageCost& stage : model.stages) stage.reduce = update;
  return steady_state(request, model).value().window;
}

// Slots are three ticks long here. With as few rounds left out as possible the next window's first op finds the sums
// just closed; each further round gives the step 2P slots more.
TEST(Provisional, IsHiddenBehindTheRoundsThatItLeavesOut) {
  for (const auto& [depth, pipelines, fewest] : {std::tuple{8, 4, 1}, std::tuple{4, 2, 1}, std::tuple{3, 1, 2}}) {
    // A mirror group sums D/2 stages one after the other.
    const Tick each = pipelines == 1 ? 3 : 1;
    const Tick without = window_of(depth, pipelines, 0, each);
    EXPECT_GT(window_of(depth, pipelines, fewest, each), without) << depth;
    EXPECT_EQ(window_of(depth, pipelines, fewest + 1, each), without) << depth;
  }
}

// When the last worker comes to such an op of the first window, by stage; updates and trial steps have stage 0.
std::map<int, Tick> times_of(const Schedule& schedule, const Timeline& timeline, OpKind kind) {
  std::map<int, Tick> times;
  for (std::size_t worker = 0; worker < schedule.workers.size(); ++worker) {
    for (std::size_t i = 0; i < schedule.workers[worker].size(); ++i) {
      const Op& op = schedule.workers[worker][i];
      if (op.kind != kind || op.window != schedule.request.first_window) continue;
      times[op.stage] = std::max(times[op.stage], timeline.spans[worker][i].begin);
    }
  }
  return times;
}

// The sums and weights of the step and the sums of the update travel over the same links: neither may be as fast as if
// the other were not there.
TEST(Provisional, SharesLinksWithTheSumsOfTheUpdate) {
  constexpr Tick kReduce = 40;
  constexpr Tick kUpdate = 7;
  for (ScheduleRequest request : shapes(8)) {
    const ProvisionalRange range = provisional_range(request);
    for (request.provisional = range.fewest; request.provisional <= range.most; ++request.provisional) {
      const Schedule schedule = make_schedule(request).value();
      TimingModel model = TimingModel::uniform(request.depth, 2, 4, kUpdate);
      for (StageCost& stage : model.stages) stage.reduce = kReduce;
      const Timeline timeline = time_schedule(schedule, model);
      const auto copied = times_of(schedule, timeline, OpKind::kProvisional);
      const auto reduced = times_of(schedule, timeline, OpKind::kStartReduce);
      const Tick update = times_of(schedule, timeline, OpKind::kUpdate).at(0);
      for (int device = 0; device < request.depth; ++device) {
        const std::vector<int>& stages = schedule.placement.stages_on(device);
        Tick all_copied = 0;
        for (const int stage : stages) all_copied = std::max(all_copied, copied.at(stage));
        for (const int stage : stages) EXPECT_GE(reduced.at(stage), all_copied) << describe(request);  // comes second
        const Tick sums = kReduce * std::ssize(stages);
        EXPECT_GE(update, all_copied + 2 * sums + kUpdate)
            << describe(request) << " leaves out " << request.provisional;
      }
    }
  }
}

TEST(Provisional, CountsInMemoryAsOneMoreBufferForWeightsAndOneForSums) {
  TimingModel model = TimingModel::uniform(4);
  for (StageCost& stage : model.stages) {
    stage.weight_bytes = 10;
    stage.gradient_bytes = 100;
    stage.optimizer_bytes = 1000;
  }
  const auto bytes_of = [&](int provisional) {
    return device_uses(schedule_with_step(ScheduleKind::kAmdp, 4, 0, 16, 2, provisional), model)[0].resident_bytes;
  };
  EXPECT_EQ(bytes_of(1), bytes_of(0) + 2 * (10 + 100));  // two chunks
}

}  // namespace
}  // namespace everstep::scheduler
