#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/loop/checkpoint_support.h"
#include "tests/trainer/loop/comparison.h"

// Train 2k windows; or train k, take a checkpoint, start again from it, and train k more: the same bits.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TrainOptions training(ModelFamily family, const TestPlan& plan, int steps) {
  TrainOptions options = under_plan(tiny_training(family, std::max(3, plan.depth - 1)), plan);
  options.steps = steps;
  return options;
}

const MemoryCheckpoint& checkpoint_of(const CheckpointedRun& run, CutKind kind, std::int64_t version) {
  const auto found = std::find_if(run.checkpoints.begin(), run.checkpoints.end(), [&](const MemoryCheckpoint& one) {
    return one.kind == kind && one.version.value == version;
  });
  EVERSTEP_CHECK(found != run.checkpoints.end(), "no such checkpoint was taken");
  return *found;
}

// ---- live, under the same plan ----

class LiveCheckpoint : public testing::TestWithParam<TestPlan> {};

std::string difference_after_live_resume(TrainOptions options) {
  const auto data = shipped_corpus(options.model);
  options.checkpoints.every_updates = 2;
  const CheckpointedRun whole = train_with_checkpoints(options, *data);
  const MemoryCheckpoint& live = checkpoint_of(whole, CutKind::kLive, 2);
  const CheckpointedRun rest = train_with_checkpoints(options, *data, &live, true);
  EXPECT_THAT(rest.steps, SizeIs(options.steps - 2));
  const std::string steps = difference_in_steps(whole.steps, rest.steps);
  return steps.empty() ? difference_between(whole.checkpoints.back(), rest.checkpoints.back()) : steps;
}

TEST_P(LiveCheckpoint, GoesOnAsIfNothingHadHappenedForGpt) {
  EXPECT_EQ(difference_after_live_resume(training(ModelFamily::kGpt, GetParam(), 4)), "");
}

TEST_P(LiveCheckpoint, GoesOnAsIfNothingHadHappenedForBert) {
  EXPECT_EQ(difference_after_live_resume(training(ModelFamily::kBert, GetParam(), 4)), "");
}

INSTANTIATE_TEST_SUITE_P(
    Training, LiveCheckpoint,
    testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 2}, TestPlan{ScheduleKind::kAmdp, 2, 2, 11},
                    TestPlan{ScheduleKind::kAmdp, 4, 1, 16, 1}, TestPlan{ScheduleKind::kAmdp, 4, 2, 19},
                    TestPlan{ScheduleKind::kAmdp, 8, 1, 8}, clockwork(2, 1, 1, 2), clockwork(3, 1, 2, 11),
                    clockwork(4, 2, 1, 11), clockwork(4, 2, 2, 19, 2), clockwork(8, 2, 1, 13), clockwork(5, 1, 1, 9, 3),
                    provisional({ScheduleKind::kAmdp, 4, 1, 12}, 1), provisional({ScheduleKind::kAmdp, 2, 2, 11}, 1),
                    provisional(clockwork(4, 2, 2, 19, 2), 2), provisional(clockwork(3, 1, 1, 9), 3)),
    [](const auto& test) { return name_of(test.param); });

TEST(Checkpoint, OfFloatingPointSumsGoesOnUnderTheSamePlan) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 4);
  options.accumulation = Accumulation::kFloat;
  EXPECT_EQ(difference_after_live_resume(options), "");
}

TEST(Checkpoint, OfBf16WeightsKeepsTheirMaster) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 4);
  options.model.precision = Precision::kBf16;
  EXPECT_EQ(difference_after_live_resume(options), "");
}

TEST(Checkpoint, WithStashedWeightsGoesOn) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 4);
  options.stash = true;
  EXPECT_EQ(difference_after_live_resume(options), "");
}

TEST(Checkpoint, BetweenEvaluationsKeepsTheirSteps) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 6);
  options.evaluate_every = 3;
  EXPECT_EQ(difference_after_live_resume(options), "");
}

TEST(Checkpoint, TakingOneChangesNothing) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 2, 19}, 4);
  const auto data = shipped_corpus(options.model);
  const auto expected = run_oracle(options, *data);
  options.checkpoints = {.every_updates = 1, .every_rounds = 2, .at_end = true};
  MemoryCheckpoints store(options);
  RunChanges changes;
  changes.change_hooks = [&](int worker, TrainHooks& hooks) { store.save_here(worker, hooks); };
  EXPECT_EQ(difference_from(expected, run_in_threads(options, *data, changes)), "");
  EXPECT_THAT(store.complete(), SizeIs(5));  // one inside the first window, then one per update
}

// ---- at a drained pipeline, under every other plan ----

struct PlanChange {
  TestPlan before;
  TestPlan after;
};

class ChangedPlan : public testing::TestWithParam<PlanChange> {};

constexpr int kWindow = 19;

std::string difference_after_change(ModelFamily family, const PlanChange& change, const CheckpointPolicy& policy,
                                    CutKind kind) {
  TrainOptions before = training(family, change.before, 2);
  before.model.shape.layers = 7;  // enough blocks for every plan
  before = under_plan(before, change.before);
  before.checkpoints = policy;
  TrainOptions whole = under_plan(before, {ScheduleKind::kOneFOneB, 1, 1, kWindow});
  whole.checkpoints = {};
  whole.steps = 4;
  const auto data = shipped_corpus(whole.model);
  const CheckpointedRun first = train_with_checkpoints(before, *data);
  const MemoryCheckpoint& cut = kind == CutKind::kFlush ? first.checkpoints.back() : checkpoint_of(first, kind, 1);
  TrainOptions after = under_plan(before, change.after);
  after.checkpoints = {};
  after.steps = 4;
  const CheckpointedRun rest = train_with_checkpoints(after, *data, &cut);
  const CheckpointedRun expected = train_with_checkpoints(whole, *data);
  const std::string steps = difference_in_steps(expected.steps, rest.steps);
  return steps.empty() ? difference_between(expected.checkpoints.back(), rest.checkpoints.back()) : steps;
}

TEST_P(ChangedPlan, GoesOnFromAFlushWithTheSameBits) {
  EXPECT_EQ(difference_after_change(ModelFamily::kGpt, GetParam(), {}, CutKind::kFlush), "");
  EXPECT_EQ(difference_after_change(ModelFamily::kBert, GetParam(), {}, CutKind::kFlush), "");
}

TEST_P(ChangedPlan, GoesOnFromACutInsideAWindowWithTheSameBits) {
  CheckpointPolicy policy;
  policy.every_rounds = 2;
  EXPECT_EQ(difference_after_change(ModelFamily::kGpt, GetParam(), policy, CutKind::kInWindow), "");
  EXPECT_EQ(difference_after_change(ModelFamily::kBert, GetParam(), policy, CutKind::kInWindow), "");
}

// Synchronous kinds with an odd number of rounds per window, so that every second round is a cut inside it.
INSTANTIATE_TEST_SUITE_P(
    Training, ChangedPlan,
    testing::Values(PlanChange{{ScheduleKind::kAmdpSync, 4, 1, kWindow}, {ScheduleKind::kOneFOneB, 3, 2, kWindow}},
                    PlanChange{{ScheduleKind::kOneFOneB, 2, 2, kWindow}, {ScheduleKind::kAmdpSync, 8, 1, kWindow}},
                    PlanChange{{ScheduleKind::kTwoDirections, 4, 1, kWindow}, {ScheduleKind::kGpipe, 5, 1, kWindow}},
                    PlanChange{{ScheduleKind::kOneFOneB, 1, 4, kWindow}, {ScheduleKind::kInterleaved, 2, 2, kWindow}},
                    PlanChange{{ScheduleKind::kAmdpSync, 2, 2, kWindow}, {ScheduleKind::kOneFOneB, 1, 1, kWindow}},
                    PlanChange{clockwork_sync(8, 2, 2, kWindow), clockwork_sync(3, 1, 1, kWindow)},
                    PlanChange{clockwork_sync(8, 4, 1, kWindow), {ScheduleKind::kAmdpSync, 4, 2, kWindow}},
                    PlanChange{{ScheduleKind::kOneFOneB, 3, 1, kWindow}, clockwork_sync(4, 2, 1, kWindow)}),
    [](const auto& test) { return name_of(test.param.before) + "_to_" + name_of(test.param.after); });

// ---- inside a window of the asynchronous pipeline ----

TEST(Checkpoint, InsideAWindowOfAFullPipelineGoesOnUnderTheSamePlan) {
  for (const TestPlan& plan : {TestPlan{ScheduleKind::kAmdp, 4, 1, 20}, TestPlan{ScheduleKind::kAmdp, 2, 2, 13},
                               clockwork(4, 2, 1, 20), clockwork(3, 1, 1, 13, 1), clockwork(8, 2, 1, 20, 1)}) {
    SCOPED_TRACE(plan);
    TrainOptions options = training(ModelFamily::kGpt, plan, 4);
    options.checkpoints.every_rounds = 3;
    const auto data = shipped_corpus(options.model);
    const CheckpointedRun whole = train_with_checkpoints(options, *data);
    const MemoryCheckpoint& cut = checkpoint_of(whole, CutKind::kInWindow, 2);
    EXPECT_GT(cut.position.value, 2 * plan.window);
    EXPECT_EQ((cut.position.value - 2 * plan.window) % super_round_size(options.schedule), 0);
    const CheckpointedRun rest = train_with_checkpoints(options, *data, &cut);
    EXPECT_EQ(difference_in_steps(whole.steps, rest.steps), "");
    EXPECT_EQ(difference_between(whole.checkpoints.back(), rest.checkpoints.back()), "");
  }
}

TEST(Checkpoint, InsideTheWindowItWasResumedInCountsFromThere) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kOneFOneB, 2, 1, 10}, 2);
  options.checkpoints.every_rounds = 2;
  const auto data = shipped_corpus(options.model);
  const CheckpointedRun whole = train_with_checkpoints(options, *data);
  const MemoryCheckpoint& first = checkpoint_of(whole, CutKind::kInWindow, 1);
  const CheckpointedRun second = train_with_checkpoints(options, *data, &first);
  const MemoryCheckpoint& later = checkpoint_of(second, CutKind::kInWindow, 1);
  EXPECT_EQ(later.position.value, first.position.value + 4);
  EXPECT_THAT(later.losses, SizeIs(6));
  const CheckpointedRun third = train_with_checkpoints(options, *data, &later);
  EXPECT_EQ(difference_between(whole.checkpoints.back(), third.checkpoints.back()), "");
}

// ---- what goes with a checkpoint ----

TEST(Checkpoint, TellsWhatBecameOfEveryWindow) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 5);
  options.checkpoints.every_updates = 2;
  options.evaluate_every = 3;
  const auto data = shipped_corpus(options.model);
  const CheckpointedRun run = train_with_checkpoints(options, *data);
  std::vector<std::int64_t> windows;
  std::vector<std::int64_t> flushed;
  for (const MemoryCheckpoint& checkpoint : run.checkpoints) {
    for (const WindowHistory& window : checkpoint.history) {
      windows.push_back(window.window);
      if (window.flushed) flushed.push_back(window.window);
      EXPECT_THAT(window.losses, SizeIs(8));
      double sum = 0;
      for (const double loss : window.losses) sum += loss;
      EXPECT_EQ(sum / 8, run.steps[window.window].loss);
    }
  }
  EXPECT_THAT(windows, ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(flushed, ElementsAre(0, 3));
}

TEST(Checkpoint, IsSkippedByAllWorkersWhenOneIsBusy) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 6);
  options.checkpoints.every_updates = 1;
  const auto data = shipped_corpus(options.model);
  int asked = 0;  // of worker 2 alone, by its own thread
  const CheckpointedRun run = train_with_checkpoints(options, *data, nullptr, false,
                                                     [&](int worker) { return worker == 2 && ++asked % 2 == 1; });
  EXPECT_THAT(run.skipped, Each(3));  // the first, third and fifth
  EXPECT_THAT(run.checkpoints, SizeIs(3));
}

TEST(Checkpoint, HasTheValidationLossOfItsOwnStateOnly) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8}, 6);
  options.checkpoints.every_updates = 1;
  options.evaluate_every = 2;
  const auto data = shipped_corpus(options.model);
  const CheckpointedRun run = train_with_checkpoints(options, *data);
  ASSERT_THAT(run.checkpoints, SizeIs(6));
  ASSERT_THAT(run.validation_losses, SizeIs(3));
  for (int version = 1; version <= 6; ++version) {
    const auto expected = version % 2 == 0 ? std::optional(run.validation_losses[version / 2 - 1]) : std::nullopt;
    EXPECT_EQ(run.checkpoints[version - 1].validation_loss, expected) << version;
  }
}

TEST(Checkpoint, OfAFinishedRunHasNothingLeftToDo) {
  TrainOptions options = training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 12}, 4);
  options.checkpoints = {.every_updates = 2, .every_rounds = 4, .at_end = true};
  const auto data = shipped_corpus(options.model);
  const CheckpointedRun whole = train_with_checkpoints(options, *data);
  EXPECT_EQ(checkpoint_of(whole, CutKind::kInWindow, 1).position.value, 16);
  for (const MemoryCheckpoint& checkpoint : whole.checkpoints) {
    options.steps = checkpoint.version.value;
    const CheckpointedRun rest = train_with_checkpoints(options, *data, &checkpoint, checkpoint.kind == CutKind::kLive);
    EXPECT_THAT(rest.steps, SizeIs(0));
    EXPECT_THAT(rest.checkpoints, SizeIs(0));
  }
}

}  // namespace
}  // namespace everstep::trainer
