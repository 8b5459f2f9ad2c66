// Whole training runs on the device, one thread per worker: the bits of the CPU, nothing that no order protects, and
// one wait per window.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/accelerator/device_runs.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/socket/loopback_workers.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// Its first update makes weights whose gradients cannot be represented.
const LearningRate kBursting{
    .peak = 1e30, .floor = 1e30, .decay = Decay::kCosine, .warmup_samples = 0, .total_samples = 300};

TrainOptions training(ModelFamily family, const TestPlan& plan) {
  TrainOptions options = under_plan(tiny_training(family, std::max(2, plan.depth - 1)), plan);
  options.steps = 3;
  options.anomalies.stops = true;
  return options;
}

// Runs both, and tells what differs, or what the checker found.
std::string difference_from_cpu(const TrainOptions& options) {
  forget_mistakes();
  const auto data = shipped_corpus(options.model);
  const auto expected = run_in_threads(options, *data);
  WaitsOfWindows waits;
  const int workers = options.schedule.depth * options.schedule.width;
  const auto runs = run_in_threads(options, *data, counting_waits(on_device(), workers, waits));
  std::string difference = difference_between(expected, runs);
  if (const std::string races = race_report(); !races.empty()) difference += "; races: " + races;
  if (options.evaluate_every > 0) return difference;
  for (const auto& of_worker : waits.by_worker) {
    for (const std::int64_t each : of_worker) {
      if (each != 1) difference += "; " + std::to_string(each) + " waits in a window";
    }
  }
  return difference;
}

class EveryPlan : public testing::TestWithParam<TestPlan> {};

TEST_P(EveryPlan, HasTheCpusBitsForGpt) { EXPECT_EQ(difference_from_cpu(training(ModelFamily::kGpt, GetParam())), ""); }

TEST_P(EveryPlan, HasTheCpusBitsForBertInBf16WithFloatSums) {
  TrainOptions options = training(ModelFamily::kBert, GetParam());
  options.model.precision = Precision::kBf16;
  options.accumulation = Accumulation::kFloat;
  EXPECT_EQ(difference_from_cpu(options), "");
}

INSTANTIATE_TEST_SUITE_P(
    Device, EveryPlan,
    testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 4}, TestPlan{ScheduleKind::kAmdp, 2, 2, 8},
                    TestPlan{ScheduleKind::kAmdp, 4, 1, 8}, TestPlan{ScheduleKind::kAmdp, 8, 1, 8},
                    TestPlan{ScheduleKind::kOneFOneB, 1, 2, 4}, TestPlan{ScheduleKind::kOneFOneB, 3, 1, 6},
                    TestPlan{ScheduleKind::kOneFOneB, 3, 2, 6}, TestPlan{ScheduleKind::kGpipe, 2, 1, 4},
                    TestPlan{ScheduleKind::kInterleaved, 2, 1, 4}, TestPlan{ScheduleKind::kTwoDirections, 4, 1, 4},
                    TestPlan{ScheduleKind::kAmdpSync, 2, 1, 4}, trainer::clockwork(4, 2, 1, 9),
                    trainer::clockwork(3, 1, 1, 8, 1), trainer::provisional({ScheduleKind::kAmdp, 4, 1, 8}, 1),
                    trainer::provisional(trainer::clockwork(4, 2, 1, 9), 2),
                    trainer::provisional(trainer::clockwork(2, 1, 2, 11), 1)),
    [](const auto& test) { return name_of(test.param); });

TEST(TrainingOnDevice, HasTheCpusBitsInEveryMode) {
  const TestPlan plan{ScheduleKind::kAmdp, 2, 1, 4};
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const Accumulation accumulation : {Accumulation::kFloat, Accumulation::kFixedPoint}) {
      for (const bool recompute : {false, true}) {
        TrainOptions options = training(ModelFamily::kGpt, plan);
        options.model.precision = precision;
        options.accumulation = accumulation;
        options.model.recompute = recompute;
        EXPECT_EQ(difference_from_cpu(options), "") << static_cast<int>(precision) << recompute;
      }
    }
  }
}

TEST(TrainingOnDevice, EvaluatesToTheCpusLosses) {
  TrainOptions options = training(ModelFamily::kBert, {ScheduleKind::kAmdp, 2, 2, 4});
  options.evaluate_every = 2;
  EXPECT_EQ(difference_from_cpu(options), "");
}

TEST(TrainingOnDevice, StashesWeights) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  options.stash = true;
  EXPECT_EQ(difference_from_cpu(options), "");
}

TEST(TrainingOnDevice, ComparesReplicas) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 2, 2, 4});
  options.compare_replicas_every = 1;
  const auto data = shipped_corpus(options.model);
  forget_mistakes();
  EXPECT_TRUE(run_in_threads(options, *data, on_device()).ok());
  RunChanges flipping;  // a weight of the first worker, before the second update
  flipping.change_hooks = [](int worker, TrainHooks& hooks) {
    if (worker != 0) return;
    const auto chunk = std::make_shared<StageRequest>();
    hooks.make_stage = [chunk, make = hooks.make_stage](const StageRequest& request) {
      *chunk = request;
      return make(request);
    };
    hooks.on_step = [chunk](const StepReport& report) {
      if (report.step == 1) chunk->device->zero(chunk->memory.weights.part(0, sizeof(float)));
    };
  };
  const auto runs = run_in_threads(options, *data, on_device(flipping));
  ASSERT_FALSE(runs.ok());
  EXPECT_EQ(runs.error().code, ErrorCode::kDataLoss);
  EXPECT_EQ(race_report(), "");
}

TEST(TrainingOnDevice, HasTheCpusBitsOverSockets) {
  const TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  const auto data = shipped_corpus(options.model);
  forget_mistakes();
  RunChanges over_sockets;
  over_sockets.make_transports = [](int workers) { return make_socket_transports(workers); };
  const auto runs = run_in_threads(options, *data, on_device(over_sockets));
  EXPECT_EQ(difference_between(run_in_threads(options, *data), runs), "");
  EXPECT_EQ(race_report(), "");
}

TEST(TrainingOnDevice, SkipsTheWindowsThatTheCpuSkips) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 2, 1, 4});
  options.anomalies.stops = false;
  options.adam.clip_norm = 0;
  options.learning_rate = kBursting;
  const auto data = shipped_corpus(options.model);
  forget_mistakes();
  const auto expected = run_in_threads(options, *data);
  ASSERT_TRUE(expected.ok());
  EXPECT_GT(expected->front().skipped, 0);
  EXPECT_EQ(difference_between(expected, run_in_threads(options, *data, on_device())), "");
  EXPECT_EQ(race_report(), "");
}

// What cannot be represented is known at the exchange, and whose minibatch it was.
TEST(TrainingOnDevice, FindsTheMinibatchThatOverflowed) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 2, 1, 4});
  options.adam.clip_norm = 0;
  options.learning_rate = kBursting;
  const auto data = shipped_corpus(options.model);
  const auto anomaly_of = [&](const RunChanges& base) {
    std::optional<Anomaly> found;
    RunChanges changes = base;
    changes.change_hooks = [&](int worker, TrainHooks& hooks) {
      if (worker == 0) hooks.on_anomaly = [&](const Anomaly& anomaly) { found = anomaly; };
    };
    EXPECT_FALSE(run_in_threads(options, *data, changes).ok());
    return found;
  };
  forget_mistakes();
  const auto expected = anomaly_of({});
  ASSERT_TRUE(expected && expected->source);
  EXPECT_EQ(anomaly_of(on_device()), expected);
  EXPECT_EQ(race_report(), "");
}

}  // namespace
}  // namespace everstep::accelerator
