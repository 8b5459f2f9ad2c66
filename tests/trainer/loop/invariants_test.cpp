#include <array>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"

// What holds of the numbers whatever the plan, as far as equality with the oracle does not say it already.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

constexpr int kWindow = 16;

// Every window as one large minibatch.
class WholeWindows final : public DataSource {
 public:
  explicit WholeWindows(const DataSource& minibatches) : minibatches_(minibatches) {}

  Result<Minibatch> training(Position window) const override {
    Minibatch whole;
    for (int i = 0; i < kWindow; ++i) {
      const Minibatch part = minibatches_.training({window.value * kWindow + i}).value();
      whole.length = part.length;
      whole.sequences += part.sequences;
      whole.tokens.insert(whole.tokens.end(), part.tokens.begin(), part.tokens.end());
      whole.labels.insert(whole.labels.end(), part.labels.begin(), part.labels.end());
    }
    return whole;
  }
  Result<Minibatch> validation(std::int64_t index) const override { return minibatches_.validation(index); }
  std::int64_t validation_minibatches() const override { return 0; }

 private:
  const DataSource& minibatches_;
};

TrainOptions gpt_training(const TestPlan& plan) {
  return under_plan(tiny_training(ModelFamily::kGpt, plan.depth <= 4 ? 3 : 6), plan);
}

// With an epsilon that dwarfs all gradients and a rate as large, AdamW's first step subtracts the gradient.
TrainOptions gradient_descent(TrainOptions options) {
  constexpr double kHuge = 1e6;
  options.steps = 1;
  options.adam.epsilon = kHuge;
  options.adam.weight_decay = 0;
  options.learning_rate = {.peak = kHuge, .floor = kHuge, .decay = Decay::kConstant};
  return options;
}

TrainOptions without_learning(TrainOptions options) {
  options.learning_rate = {.peak = 1, .floor = 0, .decay = Decay::kLinear, .warmup_samples = 0, .total_samples = 1};
  return options;
}

NamedWeights initial_weights(TrainOptions options, const DataSource& data) {
  options.steps = 0;
  return run_oracle(options, data).weights;
}

// Of a step, the tied parameter counted once.
double norm_of_step(const NamedWeights& before, const NamedWeights& after) {
  double sum = 0;
  for (const auto& [name, values] : after) {
    if (name == "lm_head.weight") continue;
    for (std::size_t i = 0; i < values.size(); ++i) sum += std::pow(double{values[i]} - before.at(name)[i], 2);
  }
  return std::sqrt(sum);
}

TEST(Invariant16, TheFirstWindowsGradientIsThatOfTheFullBatch) {
  TrainOptions options = gradient_descent(gpt_training({ScheduleKind::kAmdp, 4, 2, kWindow}));
  options.model.dropout = 0;  // its numbers belong to minibatches
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data);
  ASSERT_TRUE(runs.ok()) << runs.error();

  TrainOptions full_batch = options;
  full_batch.schedule.window = 1;
  full_batch.model.minibatch *= kWindow;
  const OracleRun reference = run_plain_training(full_batch, WholeWindows(*data));
  EXPECT_LT(relative_distance(joined_weights(*runs), reference.weights, initial_weights(options, *data)), 1e-4);
  EXPECT_NEAR(runs->front().steps[0].gradient_norm, reference.steps[0].gradient_norm, 1e-6);
}

TEST(Invariant18, WithoutLearningEveryWindowHasTheSynchronousGradient) {
  const TrainOptions options = without_learning(gpt_training({ScheduleKind::kAmdp, 4, 1, 8}));
  const auto data = shipped_corpus(options.model);
  EXPECT_EQ(difference_from(run_plain_training(options, *data), run_in_threads(options, *data)), "");
}

TEST(Invariant20, WithStashedWeightsEveryBackwardUsesThoseOfItsForward) {
  for (const TestPlan& plan : {TestPlan{ScheduleKind::kAmdp, 2, 2, 8}, TestPlan{ScheduleKind::kAmdp, 4, 1, 11}}) {
    TrainOptions options = gpt_training(plan);
    const auto data = shipped_corpus(options.model);
    const OracleRun without = run_oracle(options, *data);
    options.stash = true;
    const OracleRun stashed = run_oracle(options, *data);
    EXPECT_NE(stashed.weights, without.weights) << plan;
    EXPECT_EQ(difference_from(stashed, run_in_threads(options, *data)), "") << plan;
  }
}

TEST(Invariant21, AnUpdateDoesNotDependOnPipelinesAndGroups) {
  TrainOptions options = tiny_training(ModelFamily::kGpt, 6);
  options.steps = 1;
  options = under_plan(options, {ScheduleKind::kOneFOneB, 1, 1, kWindow});
  const auto data = shipped_corpus(options.model);
  const OracleRun reference = run_plain_training(options, *data);
  for (const int depth : {2, 4, 8}) {
    for (const int width : {1, 2}) {
      const TestPlan plan{ScheduleKind::kAmdp, depth, width, kWindow};
      EXPECT_EQ(difference_from(reference, run_in_threads(under_plan(options, plan), *data)), "") << plan;
    }
  }
}

TEST(Invariant22, TheGradientIsClippedByItsGlobalNormOnAllWorkers) {
  TrainOptions options = gradient_descent(gpt_training({ScheduleKind::kAmdp, 4, 2, kWindow}));
  const auto data = shipped_corpus(options.model);
  const NamedWeights before = initial_weights(options, *data);
  for (const double limit : {0.0, 0.25}) {
    options.adam.clip_norm = limit;
    const auto runs = run_in_threads(options, *data);
    ASSERT_TRUE(runs.ok()) << runs.error();
    const double norm = runs->front().steps[0].gradient_norm;
    ASSERT_GT(norm, 0.25);
    for (const WorkerRun& run : *runs) EXPECT_EQ(run.steps[0].gradient_norm, norm);
    const double expected = limit > 0 ? limit : norm;
    EXPECT_NEAR(norm_of_step(before, joined_weights(*runs)), expected, 1e-4 * expected);
  }
}

TEST(Invariant23, EachDeviceKeepsTheOptimizerStateOfOneStage) {
  TrainOptions options = gpt_training({ScheduleKind::kAmdp, 8, 1, 8});
  options.model.precision = Precision::kBf16;  // owners ask for a master copy, so that they can be counted
  options.steps = 1;
  std::array<std::vector<int>, 8> owned;
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) {
    hooks.initialise_master = [&, worker, initialise = hooks.initialise_master](const StageLayout& layout,
                                                                                const Buffer& master) {
      owned[worker].push_back(layout.first_block);
      initialise(layout, master);
    };
  };
  ASSERT_EQ(difference_among_replicas(run_in_threads(options, *shipped_corpus(options.model), changes)), "");
  for (int worker = 0; worker < 8; ++worker) EXPECT_THAT(owned[worker], testing::ElementsAre(options.cuts[worker]));
}

// 1/T of the minibatches meet two versions. Plain gradient descent, since Adam makes much of the smallest differences.
TEST(Invariant25, MoreRoundsPerUpdateComeCloserToSynchronousTraining) {
  std::vector<double> distances;
  for (const int rounds : {1, 3, 9}) {
    TrainOptions options = gradient_descent(gpt_training({ScheduleKind::kAmdp, 4, 1, 4 * rounds}));
    options.steps = 4;
    const auto data = shipped_corpus(options.model);
    const OracleRun synchronous = run_plain_training(options, *data);
    const OracleRun amdp = run_oracle(options, *data);
    distances.push_back(relative_distance(amdp.weights, synchronous.weights, initial_weights(options, *data)));
  }
  EXPECT_LT(distances[1], 0.5 * distances[0]);
  EXPECT_LT(distances[2], 0.5 * distances[1]);
}

}  // namespace
}  // namespace everstep::trainer
