#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/checkpoint_support.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/faulty.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/staging/passed_on_memory.h"

// Training whose windows begin on provisional weights, against the oracle; and executors that do it wrongly.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::Op;
using scheduler::ScheduleKind;

TrainOptions provisional_training(ModelFamily family, const TestPlan& plan) {
  return under_plan(tiny_training(family, plan.depth <= 4 ? 3 : plan.depth - 1), plan);
}

std::string difference_from_its_oracle(const TrainOptions& options) {
  const auto data = shipped_corpus(options.model);
  return difference_from(run_oracle(options, *data), run_in_threads(options, *data));
}

class ProvisionalPlan : public testing::TestWithParam<TestPlan> {};

TEST_P(ProvisionalPlan, GivesTheBitsOfTheOracleForGpt) {
  EXPECT_EQ(difference_from_its_oracle(provisional_training(ModelFamily::kGpt, GetParam())), "");
}

TEST_P(ProvisionalPlan, GivesTheBitsOfTheOracleForBert) {
  EXPECT_EQ(difference_from_its_oracle(provisional_training(ModelFamily::kBert, GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(
    Amdp, ProvisionalPlan,
    testing::Values(provisional({ScheduleKind::kAmdp, 2, 1, 8}, 1), provisional({ScheduleKind::kAmdp, 2, 2, 11}, 1),
                    provisional({ScheduleKind::kAmdp, 4, 1, 16}, 1), provisional({ScheduleKind::kAmdp, 4, 2, 19}, 1),
                    provisional({ScheduleKind::kAmdp, 4, 2, 32, 1}, 2), provisional({ScheduleKind::kAmdp, 8, 1, 21}, 1),
                    provisional({ScheduleKind::kAmdp, 8, 2, 32}, 1)),
    [](const auto& test) { return name_of(test.param); });

// In the last one minibatches behind those that are summed begin before the update, on what the window before made.
INSTANTIATE_TEST_SUITE_P(Clockwork, ProvisionalPlan,
                         testing::Values(provisional(clockwork(2, 1, 1, 8), 2), provisional(clockwork(2, 1, 2, 11), 1),
                                         provisional(clockwork(3, 1, 1, 8), 3),
                                         provisional(clockwork(3, 1, 2, 19, 3), 2),
                                         provisional(clockwork(4, 2, 1, 16), 2),
                                         provisional(clockwork(4, 2, 2, 19, 4), 1),
                                         provisional(clockwork(8, 4, 1, 16, 1), 2),
                                         provisional(clockwork(8, 2, 2, 29), 4), provisional(clockwork(4, 1, 1, 8), 6)),
                         [](const auto& test) { return name_of(test.param); });

TEST(Provisional, GivesTheBitsOfTheOracleInBf16AndWithRecomputation) {
  for (const TestPlan& plan :
       {provisional(clockwork(4, 2, 1, 9), 1), provisional({ScheduleKind::kAmdp, 4, 1, 12}, 1)}) {
    for (const bool recomputes : {false, true}) {
      TrainOptions options = provisional_training(ModelFamily::kGpt, plan);
      options.model.precision = recomputes ? Precision::kFp32 : Precision::kBf16;
      options.model.recompute = recomputes;
      EXPECT_EQ(difference_from_its_oracle(options), "") << plan;
    }
  }
}

TEST(Provisional, GivesTheBitsOfTheOracleOverManyWindows) {
  TrainOptions options = provisional_training(ModelFamily::kGpt, provisional(clockwork(4, 2, 1, 8), 1));
  options.steps = 12;
  EXPECT_EQ(difference_from_its_oracle(options), "");
}

// Its numbers are those of integers, nearly.
TEST(Provisional, WithFloatSumsStaysCloseToTheOracle) {
  TrainOptions options = provisional_training(ModelFamily::kGpt, provisional(clockwork(4, 2, 1, 8), 1));
  options.accumulation = Accumulation::kFloat;
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data);
  ASSERT_TRUE(runs.ok()) << runs.error();
  EXPECT_EQ(difference_among_replicas(runs), "");
  const OracleRun oracle = run_oracle(options, *data);
  for (std::size_t step = 0; step < oracle.steps.size(); ++step) {
    EXPECT_NEAR(runs->front().steps[step].loss, oracle.steps[step].loss, 1e-4);
  }
}

TEST(Provisional, ChangesWhatTrainingDoes) {
  const TestPlan plan = clockwork(4, 2, 1, 8);
  const TrainOptions with = provisional_training(ModelFamily::kGpt, provisional(plan, 1));
  const auto data = shipped_corpus(with.model);
  const OracleRun oracle = run_oracle(provisional_training(ModelFamily::kGpt, plan), *data);
  EXPECT_NE(difference_from(oracle, run_in_threads(with, *data)), "");
}

TEST(Provisional, IsRefusedTogetherWithAStash) {
  TrainOptions options = provisional_training(ModelFamily::kGpt, provisional(clockwork(2, 1, 1, 8), 2));
  options.stash = true;
  const auto data = shipped_corpus(options.model);
  const auto runs = run_in_threads(options, *data);
  ASSERT_FALSE(runs.ok());
  EXPECT_THAT(runs.error().message, testing::HasSubstr("--stash"));
}

// ---- wrong ones ----

// Reads the weights of the version before where provisional ones are meant, at one stage.
class ReadsTheVersionBefore final : public Faulty<ReadsTheVersionBefore> {
 public:
  using Faulty::Faulty;

 private:
  bool reads_provisional(const Op& op) const override { return op.stage != 1 && Faulty::reads_provisional(op); }
};

// Reads provisional weights in one backward more: the first of the window behind the update.
class ReadsThemAfterTheUpdate final : public Faulty<ReadsThemAfterTheUpdate> {
 public:
  using Faulty::Faulty;

 private:
  bool reads_provisional(const Op& op) const override {
    const bool is_the_first = op.window == updates() && op.window > 0 && op.round == 0 && op.minibatch == 0;
    return is_the_first || Faulty::reads_provisional(op);
  }
};

// Takes no notice of how the last gradient was clipped.
class ForgetsTheClip final : public Faulty<ForgetsTheClip> {
 public:
  using Faulty::Faulty;

 private:
  StepInput provisional_input(std::int64_t window) const override {
    StepInput input = Faulty::provisional_input(window);
    input.clip_scale = static_cast<double>(stream().pattern().request.window) /
                       provisional_minibatches(stream().pattern().request).value();
    return input;
  }
};

// Clips as it was done one update earlier.
class ClipsAsTheOneBeforeTheLast final : public Faulty<ClipsAsTheOneBeforeTheLast> {
 public:
  using Faulty::Faulty;

 private:
  StepInput provisional_input(std::int64_t window) const override {
    StepInput input = Faulty::provisional_input(window);
    if (window != window_) {
      stale_ = newest_;
      newest_ = input.clip_scale;
      window_ = window;
    }
    input.clip_scale = stale_;
    return input;
  }

  mutable double stale_ = 1;
  mutable double newest_ = 1;
  mutable std::int64_t window_ = -1;
};

// A step that leaves its traces in the moments.
class TouchesTheMoments final : public PassedOnMemory {
 public:
  void adamw_trial(Accumulation accumulation, Precision precision, const kernels::AdamWConstants& constants,
                   const AdamWBuffers& buffers, const Buffer& weights) override {
    PassedOnMemory::adamw_trial(accumulation, precision, constants, buffers, weights);
    AdamWBuffers real = buffers;
    for (Buffer AdamWBuffers::*const changed : {&AdamWBuffers::master, &AdamWBuffers::gradient}) {
      real.*changed = allocate_scratch((buffers.*changed).size);
      copy(real.*changed, buffers.*changed);
    }
    adamw(accumulation, constants, real);
  }
};

// ---- live checkpoints ----

TEST(ProvisionalCheckpoint, HasTheWeightsThatTheNextWindowBeganOnAndTheClip) {
  TrainOptions options = provisional_training(ModelFamily::kGpt, provisional(clockwork(4, 2, 1, 8), 1));
  options.checkpoints.every_updates = 2;
  const auto data = shipped_corpus(options.model);
  const CheckpointedRun whole = train_with_checkpoints(options, *data);
  const MemoryCheckpoint& live = whole.checkpoints.front();
  ASSERT_EQ(live.kind, CutKind::kLive);
  EXPECT_TRUE(live.has(storage::StateKind::kProvisional));
  EXPECT_FALSE(live.has(storage::StateKind::kPrevious)) << "nothing reads it any more";
  EXPECT_FALSE(whole.checkpoints.back().has(storage::StateKind::kProvisional)) << "drained";
  EXPECT_LT(live.clip_scale, 1);
  const auto difference_from_here = [&](const MemoryCheckpoint& from) {
    const CheckpointedRun rest = train_with_checkpoints(options, *data, &from, true);
    return difference_between(whole.checkpoints.back(), rest.checkpoints.back());
  };
  EXPECT_EQ(difference_from_here(live), "");
  MemoryCheckpoint without = live;
  without.drop(storage::StateKind::kProvisional);
  EXPECT_NE(difference_from_here(without), "");
  MemoryCheckpoint unclipped = live;
  unclipped.clip_scale = 1;
  EXPECT_NE(difference_from_here(unclipped), "");
}

class ProvisionalControl : public testing::TestWithParam<TestPlan> {
 protected:
  std::string difference_of(const RunChanges& changes) const {
    const auto runs = run_in_threads(options_, *data_, changes);
    EXPECT_TRUE(runs.ok()) << runs.error();  // it has to end well, with other numbers
    return difference_from(run_oracle(options_, *data_), runs);
  }

  template <typename AnyWorker>
  std::string difference_of() const {
    RunChanges changes;
    changes.program = AnyWorker::train;
    return difference_of(changes);
  }

  TrainOptions options_ = under_plan(tiny_training(ModelFamily::kGpt, 3), GetParam());
  std::unique_ptr<DataSource> data_ = shipped_corpus(options_.model);
};

constexpr const char* kOtherNumbers =
    "(loss|norm) of update [0-9]+ is .* instead of|stage [0-9]+: .*\\[[0-9]+\\] is .* instead of";

TEST_P(ProvisionalControl, AForwardOnTheWrongWeightsOfThreeIsCaught) {
  EXPECT_THAT(difference_of<ReadsTheVersionBefore>(), testing::ContainsRegex(kOtherNumbers));
  EXPECT_THAT(difference_of<ReadsThemAfterTheUpdate>(), testing::ContainsRegex(kOtherNumbers));
}

TEST_P(ProvisionalControl, AStaleClipIsCaught) {
  EXPECT_THAT(difference_of<ForgetsTheClip>(), testing::ContainsRegex(kOtherNumbers));
  EXPECT_THAT(difference_of<ClipsAsTheOneBeforeTheLast>(), testing::ContainsRegex(kOtherNumbers));
}

TEST_P(ProvisionalControl, AStepThatTouchesTheMomentsIsCaught) {
  TouchesTheMoments touches;
  PassedOnMemory passes_on;
  for (PassedOnMemory* const memory : {&passes_on, static_cast<PassedOnMemory*>(&touches)}) {
    RunChanges changes;
    changes.change_hooks = [&](int, TrainHooks& hooks) { hooks.device = memory; };
    const std::string difference = difference_of(changes);
    if (memory == &passes_on) {
      EXPECT_EQ(difference, "");
    } else {
      EXPECT_THAT(difference, testing::ContainsRegex(kOtherNumbers));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Training, ProvisionalControl,
                         testing::Values(provisional({ScheduleKind::kAmdp, 4, 1, 8}, 1),
                                         provisional(clockwork(4, 2, 1, 8), 1), provisional(clockwork(3, 1, 1, 8), 3)),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace everstep::trainer
