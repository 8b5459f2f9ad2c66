#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/recovery/asked_stops.h"

// What interrupts the even course of training: gradients that are not finite, evaluations, a requested stop.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

// A stage that reports of one minibatch that a gradient was too large.
class OverflowsOnce final : public StageCompute {
 public:
  OverflowsOnce(std::unique_ptr<StageCompute> stage, Position at) : stage_(std::move(stage)), at_(at) {}

  void select_weights(WeightSet set) override { stage_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    return stage_->forward(position, std::move(input));
  }
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override {
    return stage_->backward_input(position, std::move(output_gradient), parity);
  }
  Status backward_weights(Position position, int parity) override {
    has_passed_ = position == at_;
    return stage_->backward_weights(position, parity);
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return stage_->evaluate(index, std::move(input));
  }
  Noted<bool> take_overflow(int parity) override {
    return std::exchange(has_passed_, false) ? true : stage_->take_overflow(parity);
  }

 private:
  std::unique_ptr<StageCompute> stage_;
  Position at_;
  bool has_passed_ = false;
};

class Interrupted : public testing::TestWithParam<TestPlan> {
 protected:
  TrainOptions options_ = under_plan(tiny_training(ModelFamily::kGpt, 3), GetParam());
  std::unique_ptr<DataSource> data_ = shipped_corpus(options_.model);
};

TEST_P(Interrupted, AWindowThatOverflowsOnOneWorkerIsSkippedByAll) {
  options_.steps = 5;
  RunChanges changes;
  const Position last{3 * options_.schedule.window - 1};  // of window 2
  changes.change_hooks = [last](int /*worker*/, TrainHooks& hooks) {
    hooks.make_stage = [last, make_stage = hooks.make_stage](const StageRequest& request) {
      auto stage = make_stage(request);
      if (request.layout.first_block > 0) return stage;
      return std::unique_ptr<StageCompute>(std::make_unique<OverflowsOnce>(std::move(stage), last));
    };
  };
  const auto runs = run_in_threads(options_, *data_, changes);
  EXPECT_EQ(difference_from(run_oracle(options_, *data_, {2}), runs), "");
  for (const WorkerRun& run : runs.value()) {
    EXPECT_EQ(run.skipped, 1);
    EXPECT_EQ(run.steps.size(), 5U);
  }
}

TEST_P(Interrupted, WindowsWithoutFiniteGradientsAreSkipped) {
  for (const Accumulation accumulation : {Accumulation::kFixedPoint, Accumulation::kFloat}) {
    options_.accumulation = accumulation;
    options_.learning_rate = {.peak = 1e30, .floor = 1e30, .decay = Decay::kConstant};  // ruins the weights at once
    const auto runs = run_in_threads(options_, *data_);
    EXPECT_EQ(difference_among_replicas(runs), "");
    for (const WorkerRun& run : runs.value()) EXPECT_EQ(run.skipped, options_.steps - 1);
    if (accumulation == Accumulation::kFloat) continue;
    EXPECT_EQ(difference_from(run_oracle(options_, *data_), runs), "");
  }
}

TEST_P(Interrupted, EvaluationsMeasureTheOraclesLossAndDrainThePipeline) {
  options_.steps = 5;
  options_.evaluate_every = 2;
  options_.evaluate_minibatches = 3;
  const OracleRun oracle = run_oracle(options_, *data_);
  ASSERT_EQ(oracle.validation_losses.size(), 3U);
  EXPECT_EQ(difference_from(oracle, run_in_threads(options_, *data_)), "");

  options_.evaluate_every = 0;
  const bool drains_matter = is_asynchronous(options_.schedule.kind);
  EXPECT_EQ(run_oracle(options_, *data_).weights != oracle.weights, drains_matter);
}

RunChanges stop_at_update(int update) {
  RunChanges changes;
  const auto stops = std::make_shared<AskedStops>([update, updates = 0]() mutable { return ++updates == update; });
  changes.change_hooks = [stops](int worker, TrainHooks& hooks) {
    if (worker == 1) hooks.stops = stops.get();
  };
  return changes;
}

TEST_P(Interrupted, AStopEndsAllWorkersAtOneWindowAsIfItHadBeenTheLast) {
  options_.steps = 100;
  const auto runs = run_in_threads(options_, *data_, stop_at_update(2));
  options_.steps = is_asynchronous(options_.schedule.kind) ? 3 : 2;
  EXPECT_EQ(difference_from(run_oracle(options_, *data_), runs), "");
}

TEST_P(Interrupted, AStopAtADrainEndsThere) {
  options_.steps = 100;
  options_.evaluate_every = 2;
  const auto runs = run_in_threads(options_, *data_, stop_at_update(2));
  options_.steps = 2;
  EXPECT_EQ(difference_from(run_oracle(options_, *data_), runs), "");
}

INSTANTIATE_TEST_SUITE_P(Training, Interrupted,
                         testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 4},
                                         TestPlan{ScheduleKind::kAmdp, 4, 2, 11},
                                         provisional({ScheduleKind::kAmdp, 4, 1, 9}, 1),
                                         provisional(clockwork(3, 1, 2, 11, 1), 3),
                                         TestPlan{ScheduleKind::kOneFOneB, 3, 1, 5}),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace everstep::trainer
