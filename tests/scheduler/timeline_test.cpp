#include "scheduler/timeline.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "tests/scheduler/support.h"

namespace everstep::scheduler {
namespace {

TimingModel uniform_for(const ScheduleRequest& request, Tick forward = 1, Tick backward = 2, Tick update = 0) {
  const Placement placement = Placement::make(request.kind, request.depth, request.chunks_per_device).value();
  return TimingModel::uniform(placement.stages(), forward, backward, update);
}

Tick makespan_of(const ScheduleRequest& request, Tick forward = 1, Tick backward = 2, Tick update = 0) {
  return time_schedule(make_schedule(request).value(), uniform_for(request, forward, backward, update)).makespan;
}

SteadyState steady_of(const ScheduleRequest& request, Tick forward = 1, Tick backward = 2) {
  return steady_state(request, uniform_for(request, forward, backward)).value();
}

ScheduleRequest amdp(int depth, int rounds, int windows, int preload) {
  ScheduleRequest request = request_of(ScheduleKind::kAmdp, depth, 1, rounds * depth, windows);
  request.preload = preload;
  return request;
}

std::vector<int> depths_from(int first) {
  std::vector<int> depths;
  for (int depth = first; depth <= 32; depth += 4) depths.push_back(depth);
  return depths;
}

TEST(Timeline, OfAmdpTakesThreeTimesDepthPlusOneARoundAndThreeOnce) {
  for (const int depth : depths_from(4)) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      for (int windows = 1; windows <= 3; ++windows) {
        EXPECT_EQ(makespan_of(amdp(depth, rounds, windows, 2)), rounds * windows * (3 * depth + 1) + 3);
      }
    }
  }
}

TEST(Timeline, OfAmdpTakesOneMoreARoundWithPreloadOne) {
  for (const int depth : depths_from(4)) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      for (int windows = 1; windows <= 3; ++windows) {
        EXPECT_EQ(makespan_of(amdp(depth, rounds, windows, 1)), rounds * windows * (3 * depth + 2) + 2);
      }
    }
  }
}

TEST(Timeline, OfAmdpHasNoBubbleAtDepthTwo) {
  for (const int preload : {1, 2}) {
    for (int rounds = 1; rounds <= 5; ++rounds) {
      for (int windows = 1; windows <= 4; ++windows) {
        EXPECT_EQ(makespan_of(amdp(2, rounds, windows, preload)), rounds * windows * 6 + 3);
      }
      EXPECT_EQ(steady_of(amdp(2, rounds, 1, preload)).window, rounds * 6);
      EXPECT_EQ(steady_of(amdp(2, rounds, 1, preload)).busy(), 1.0);
    }
  }
}

TEST(SteadyState, OfAmdpIsBusyButForOneForwardARound) {
  for (const int depth : depths_from(4)) {
    for (int rounds = 1; rounds <= 8; ++rounds) {
      const SteadyState steady = steady_of(amdp(depth, rounds, 1, 2));
      EXPECT_EQ(steady.window, rounds * (3 * depth + 1));
      EXPECT_DOUBLE_EQ(steady.busy(), 1.0 - 1.0 / (3 * depth + 1));
      const SteadyState strict = steady_of(amdp(depth, rounds, 1, 1));
      EXPECT_EQ(strict.window, rounds * (3 * depth + 2));
      EXPECT_DOUBLE_EQ(strict.busy(), 1.0 - 2.0 / (3 * depth + 2));
    }
  }
}

TEST(SteadyState, OfAmdpFollowsTheFormulaAtOtherRatiosOfBackwardToForward) {
  for (const int depth : {4, 8, 12, 16, 24, 32}) {
    for (const auto& [forward, backward] : {std::pair<Tick, Tick>{1, 1}, {2, 3}, {1, 2}, {2, 5}, {1, 3}}) {
      const Tick idle = (backward - forward) + std::max<Tick>(0, backward - 2 * forward);
      EXPECT_EQ(steady_of(amdp(depth, 4, 1, 2), forward, backward).window, 4 * (depth * (forward + backward) + idle));
      EXPECT_EQ(steady_of(amdp(depth, 4, 1, 1), forward, backward).window,
                4 * (depth * (forward + backward) + 2 * (backward - forward)));
    }
  }
}

TEST(SteadyState, OfTheSynchronousTwinPaysThreeForwardsAWindow) {
  for (const int depth : depths_from(4)) {
    for (int rounds = 1; rounds <= 4; ++rounds) {
      ScheduleRequest request = amdp(depth, rounds, 1, 2);
      request.kind = ScheduleKind::kAmdpSync;
      EXPECT_EQ(steady_of(request).window, rounds * (3 * depth + 1) + 3);
      request.windows = 3;
      EXPECT_EQ(makespan_of(request), 3 * (rounds * (3 * depth + 1) + 3));
    }
  }
}

TEST(SteadyState, OfOneFOneBAndGpipeWaitsDepthMinusOneTimes) {
  for (int depth = 1; depth <= 16; ++depth) {
    for (int window = depth; window <= 4 * depth; ++window) {
      for (const ScheduleKind kind : {ScheduleKind::kOneFOneB, ScheduleKind::kGpipe}) {
        const SteadyState steady = steady_of(request_of(kind, depth, 1, window, 1));
        EXPECT_EQ(steady.window, 3 * (window + depth - 1));
        EXPECT_DOUBLE_EQ(steady.busy(), static_cast<double>(window) / (window + depth - 1));
      }
    }
  }
}

TEST(SteadyState, OfInterleavedDividesTheWaitByItsChunks) {
  for (int depth = 1; depth <= 16; ++depth) {
    for (int chunks = 1; chunks <= 4; ++chunks) {
      for (int rounds = 1; rounds <= 4; ++rounds) {
        ScheduleRequest request = request_of(ScheduleKind::kInterleaved, depth, 1, rounds * depth, 1);
        request.chunks_per_device = chunks;
        const int work = chunks * rounds * depth;
        EXPECT_EQ(steady_of(request).window, 3 * (work + depth - 1)) << describe(request);
        EXPECT_DOUBLE_EQ(steady_of(request).busy(), static_cast<double>(work) / (work + depth - 1));
      }
    }
  }
}

TEST(SteadyState, OfPipedreamHasNoBubble) {
  for (int depth = 1; depth <= 16; ++depth) {
    for (int rounds = 1; rounds <= 3; ++rounds) {
      EXPECT_EQ(steady_of(request_of(ScheduleKind::kPipedream2bw, depth, 1, rounds * depth, 1)).busy(), 1.0);
    }
  }
}

TEST(SteadyState, ReachesTheFiguresOfTheComparison) {
  const auto busy = [](ScheduleKind kind, int rounds) {
    return steady_of(request_of(kind, 8, 1, 8 * rounds, 1)).busy();
  };
  for (const int rounds : {1, 4}) EXPECT_NEAR(busy(ScheduleKind::kAmdp, rounds), 0.960, 0.0005);
  EXPECT_NEAR(busy(ScheduleKind::kOneFOneB, 4), 0.821, 0.0005);
  EXPECT_NEAR(busy(ScheduleKind::kInterleaved, 4), 0.901, 0.0005);
  EXPECT_NEAR(busy(ScheduleKind::kAmdpSync, 4), 0.932, 0.0005);
  EXPECT_NEAR(busy(ScheduleKind::kOneFOneB, 1), 0.533, 0.0005);
}

TEST(SteadyState, IgnoresWhereARequestStartsAndStops) {
  ScheduleRequest request = amdp(8, 2, 1, 2);
  const SteadyState plain = steady_of(request);
  request.windows = 9;
  request.first_window = 4;
  request.first_minibatch = 3;
  request.stop_after_rounds = 1;
  request.flush_after = {5, 6};
  const SteadyState same = steady_of(request);
  EXPECT_EQ(same.window, plain.window);
  EXPECT_EQ(same.busy(), plain.busy());
}

TEST(SteadyState, RefusesWhatHasNoSchedule) {
  EXPECT_FALSE(steady_state(request_of(ScheduleKind::kAmdp, 6, 1, 6, 1), TimingModel::uniform(6)));
}

TEST(SteadyState, PaysForTheWholeUpdateSinceAllMeetThere) {
  for (const int depth : {4, 8, 16}) {
    const ScheduleRequest request = amdp(depth, 2, 1, 2);
    for (const Tick update : {1, 4}) {
      const SteadyState steady = steady_state(request, TimingModel::uniform(depth, 1, 2, update)).value();
      EXPECT_EQ(steady.window, 2 * (3 * depth + 1) + update);
    }
  }
}

// One stage that is slower than the others, a slow link, a slow reduce: all arrive in the ticks.
TEST(Timeline, CountsEveryCostOfTheModel) {
  const ScheduleRequest request = request_of(ScheduleKind::kOneFOneB, 2, 1, 2, 1);
  const Schedule schedule = make_schedule(request).value();
  TimingModel model = TimingModel::uniform(2, 10, 20, 1000);
  EXPECT_EQ(time_schedule(schedule, model).makespan, 90 + 1000);
  model.stages[1].forward = 15;
  EXPECT_EQ(time_schedule(schedule, model).makespan, 100 + 1000);
  model.stages[1].forward = 10;
  model.stages[0].transfer = 3;  // of its output and of the gradient that comes back
  EXPECT_EQ(time_schedule(schedule, model).makespan, 96 + 1000);
  model.stages[0].transfer = 0;
  model.stages[1].transfer = 7;  // the last stage sends nothing on
  EXPECT_EQ(time_schedule(schedule, model).makespan, 90 + 1000);
  model.latency = 5;
  EXPECT_EQ(time_schedule(schedule, model).makespan, 100 + 1000);
  model.latency = 0;
  model.stages[0].reduce = 50;
  EXPECT_EQ(time_schedule(schedule, model).makespan, 140 + 1000);
}

TEST(Timeline, CountsBusyTicksAndPeakActivations) {
  const Schedule schedule = make_schedule(amdp(8, 4, 2, 2)).value();
  TimingModel model = TimingModel::uniform(8);
  for (StageCost& stage : model.stages) stage.activation_bytes = 100;
  const Timeline timeline = time_schedule(schedule, model);
  ASSERT_EQ(timeline.workers.size(), 8U);
  for (int device = 0; device < 8; ++device) {
    EXPECT_EQ(timeline.workers[device].busy, 2 * 32 * 3);
    EXPECT_EQ(timeline.workers[device].peak_activation_bytes, schedule.placement.is_edge(device) ? 700 : 800);
  }
}

TEST(Timeline, CountsWhatTheOpAtHandNeedsBesides) {
  // Stage 1 has no more than one minibatch under way, stage 0 has two while stage 1 runs the first one.
  const Schedule schedule = make_schedule(request_of(ScheduleKind::kOneFOneB, 2, 1, 4, 1)).value();
  TimingModel model = TimingModel::uniform(2);
  for (StageCost& stage : model.stages) stage.activation_bytes = 100;
  model.stages[0].working_bytes = 7;
  model.stages[1].working_bytes = 1000;
  const Timeline timeline = time_schedule(schedule, model);
  EXPECT_EQ(timeline.workers[0].peak_bytes(), 207);
  EXPECT_EQ(timeline.workers[1].peak_bytes(), 1100);
}

TEST(Timeline, CountsWeightsGradientsAndTheOwnersState) {
  const auto resident = [](ScheduleKind kind, int depth) {
    const Schedule schedule = make_schedule(request_of(kind, depth, 1, depth, 1)).value();
    TimingModel model = TimingModel::uniform(schedule.placement.stages());
    for (StageCost& stage : model.stages) {
      stage.weight_bytes = 1;
      stage.gradient_bytes = 100;
      stage.optimizer_bytes = 10'000;
    }
    std::vector<std::int64_t> bytes;
    for (const DeviceUse& use : time_schedule(schedule, model).workers) bytes.push_back(use.resident_bytes);
    return bytes;
  };
  // Half the model everywhere, one owned stage, and a second gradient buffer where the last stage is.
  EXPECT_EQ(resident(ScheduleKind::kAmdp, 4), (std::vector<std::int64_t>{10'302, 10'202, 10'202, 10'302}));
  EXPECT_EQ(resident(ScheduleKind::kAmdpSync, 4), (std::vector<std::int64_t>{10'202, 10'202, 10'202, 10'202}));
  EXPECT_EQ(resident(ScheduleKind::kAmdp, 2), (std::vector<std::int64_t>{10'101, 10'201}));
  EXPECT_EQ(resident(ScheduleKind::kOneFOneB, 3), (std::vector<std::int64_t>{10'101, 10'101, 10'101}));
  EXPECT_EQ(resident(ScheduleKind::kPipedream2bw, 2), (std::vector<std::int64_t>{10'102, 10'102}));
  EXPECT_EQ(resident(ScheduleKind::kInterleaved, 2), (std::vector<std::int64_t>{20'202, 20'202}));
  EXPECT_EQ(resident(ScheduleKind::kTwoDirections, 2), (std::vector<std::int64_t>{10'202, 10'202}));
}

TEST(TimelineDeathTest, DemandsACostForEveryStage) {
  const Schedule schedule = make_schedule(amdp(4, 1, 1, 2)).value();
  EXPECT_DEATH(time_schedule(schedule, TimingModel::uniform(3)), "one cost per stage");
}

ScheduleRequest clockwork_at(int depth, int pipelines, int window, int lag = 0) {
  ScheduleRequest request = request_of(ScheduleKind::kClockwork, depth, 1, window, 1);
  request.pipelines = pipelines;
  request.lag = lag;
  return request;
}

// Costs as the design has them: forward, input and weights as 1 to 1.1 to 0.75.
double steady_busy_of(const ScheduleRequest& request, Tick latency = 0) {
  TimingModel model = TimingModel::uniform(request.depth, 100, 185);
  for (StageCost& stage : model.stages) stage.weights = 75;
  model.latency = latency;
  return steady_state(request, model).value().busy();
}

TEST(SteadyState, OfClockworkHasNoBubbleWhereAllHalvesAreEqual) {
  for (int depth = 1; depth <= 16; ++depth) {
    for (const int pipelines : clockwork_pipelines(depth)) {
      EXPECT_EQ(steady_of(clockwork_at(depth, pipelines, 4 * depth)).busy(), 1.0) << depth << " " << pipelines;
    }
  }
}

TEST(SteadyState, OfClockworkReachesTheFiguresOfTheDesign) {
  EXPECT_NEAR(steady_busy_of(clockwork_at(4, 2, 16)), 0.998, 0.003);
  EXPECT_NEAR(steady_busy_of(clockwork_at(8, 4, 32)), 0.999, 0.003);
  EXPECT_NEAR(steady_busy_of(clockwork_at(8, 4, 8)), 0.996, 0.005);
  EXPECT_NEAR(steady_busy_of(clockwork_at(6, 3, 32)), 0.983, 0.008);
  EXPECT_NEAR(steady_busy_of(clockwork_at(16, 8, 64)), 0.999, 0.003);
  EXPECT_NEAR(steady_busy_of(clockwork_at(7, 1, 16)), 1.0, 0.003);
  // A fixed place for the gradients of weights would lose a sixth here.
  const auto uneven = [](int depth, Tick forward, Tick input, Tick weights) {
    TimingModel model = TimingModel::uniform(depth, forward, input + weights);
    for (StageCost& stage : model.stages) stage.weights = weights;
    return steady_state(clockwork_at(depth, depth / 2, 4 * depth), model).value().busy();
  };
  EXPECT_GT(uneven(8, 100, 100, 50), 0.99);
  EXPECT_GT(uneven(8, 100, 150, 50), 0.95);
}

TEST(SteadyState, OfClockworkBearsLatencyBetterThanAmdp) {
  for (const int depth : {4, 8, 16}) {
    EXPECT_GT(steady_busy_of(clockwork_at(depth, depth / 2, 4 * depth), 10), 0.97) << depth;
    EXPECT_GT(steady_busy_of(clockwork_at(depth, depth / 2, 4 * depth, 1), 10), 0.97) << depth;
    EXPECT_LT(steady_busy_of(request_of(ScheduleKind::kAmdp, depth, 1, 4 * depth, 1), 10), 0.96) << depth;
  }
}

TEST(SteadyState, OfClockworkHidesMoreOfAReduceTheLaterItsUpdateIs) {
  TimingModel model = TimingModel::uniform(8, 100, 200);
  for (StageCost& stage : model.stages) stage.reduce = 150;
  const auto busy = [&](int lag) { return steady_state(clockwork_at(8, 4, 32, lag), model).value().busy(); };
  EXPECT_LT(busy(0), busy(4));
  EXPECT_LE(busy(4), busy(8));
  EXPECT_GT(busy(8), 0.97);
}

TEST(Timeline, RunsTheGradientsOfWeightsInTheOrderOfTheBackwards) {
  const Schedule schedule = make_schedule(clockwork_at(4, 2, 8)).value();
  const Timeline timeline = time_schedule(schedule, TimingModel::uniform(4));
  for (std::size_t worker = 0; worker < 4; ++worker) {
    std::vector<Op> backwards;
    for (const Op& op : schedule.workers[worker]) {
      if (op.kind == OpKind::kBackward) backwards.push_back(weights_of(op));
    }
    std::vector<Op> weights;
    for (const FloatingOp& floating : timeline.weights[worker]) weights.push_back(floating.op);
    EXPECT_EQ(weights, backwards);
    EXPECT_EQ(timeline.workers[worker].busy, 8 * 3);
  }
  EXPECT_EQ(std::max_element(timeline.weights.begin(), timeline.weights.end(),
                             [](const auto& a, const auto& b) { return a.back().span.end < b.back().span.end; })
                ->back()
                .span.end,
            timeline.makespan);
}

// D/2 + 1 minibatches between forward and backward, and one whose weights have no gradient yet.
TEST(Timeline, OfClockworkKeepsActivationsUntilTheGradientsOfWeightsAreDone) {
  for (int depth = 4; depth <= 16; depth += 2) {
    const Schedule schedule = make_schedule(clockwork_at(depth, depth / 2, 4 * depth)).value();
    TimingModel model = TimingModel::uniform(depth);
    for (StageCost& stage : model.stages) {
      stage.activation_bytes = 100;
      stage.weights_kept_bytes = 10;
    }
    const std::vector<DeviceUse> uses = device_uses(schedule, model);
    EXPECT_EQ(uses[0].peak_activation_bytes, 100 * (depth / 2 + 1) + 10) << depth;
    EXPECT_EQ(uses[1].peak_activation_bytes, 100 * (depth / 2) + 10) << depth;
  }
}

// Workers split the backwards of every kind. What the last one keeps is still there when the next op begins, unless the
// sum that it belongs to was closed.
TEST(Timeline, OfEveryKindKeepsWhatOneGradientOfWeightsIsMadeOf) {
  for (const ScheduleKind kind : all_schedule_kinds()) {
    ScheduleRequest request;
    request.kind = kind;
    request.depth = 4;
    request.window = 16;
    request.windows = 2;
    const Schedule schedule = make_schedule(request).value();
    TimingModel model = TimingModel::uniform(schedule.placement.stages());
    for (StageCost& stage : model.stages) stage.activation_bytes = 100;
    const std::vector<DeviceUse> undivided = device_uses(schedule, model);
    for (StageCost& stage : model.stages) stage.weights_kept_bytes = 10;
    const std::vector<DeviceUse> divided = device_uses(schedule, model);
    for (std::size_t worker = 0; worker < divided.size(); ++worker) {
      const std::int64_t kept = divided[worker].peak_activation_bytes - undivided[worker].peak_activation_bytes;
      const bool is_full_before_any_backward = kind == ScheduleKind::kGpipe;
      EXPECT_EQ(kept, is_full_before_any_backward ? 0 : 10) << to_string(kind) << " worker " << worker;
    }
  }
}

TEST(Timeline, OfClockworkCountsSecondGradientBuffersWhereWindowsMeet) {
  const auto gradients = [](const ScheduleRequest& request) {
    TimingModel model = TimingModel::uniform(request.depth);
    for (StageCost& stage : model.stages) stage.gradient_bytes = 1;
    std::int64_t bytes = 0;
    for (const DeviceUse& use : device_uses(make_schedule(request).value(), model)) bytes += use.resident_bytes;
    return bytes;
  };
  EXPECT_EQ(gradients(clockwork_at(4, 2, 16)), 8);
  EXPECT_EQ(gradients(clockwork_at(4, 2, 16, 1)), 8 + 2);
  EXPECT_EQ(gradients(clockwork_at(4, 2, 16, 4)), 8 + 8);
  EXPECT_EQ(gradients(clockwork_at(7, 1, 16)), 7 + 5);
}

}  // namespace
}  // namespace everstep::scheduler
