#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/clockwork.h"
#include "tests/trainer/recovery/checked_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

struct Shape {
  int depth;
  int pipelines;
  int width;
  int window;
  int lag = 0;
  ScheduleKind kind = ScheduleKind::kClockwork;
  int provisional = 0;
};

TestGeneration generation_of(const Shape& shape, std::vector<int> workers, TestStop stop = {}) {
  return {shape.kind, shape.depth,     shape.width, std::move(workers), {},
          stop,       shape.pipelines, shape.lag,   shape.provisional};
}

TestGeneration with_donors(TestGeneration generation, std::vector<int> donors) {
  generation.donors = std::move(donors);
  return generation;
}

std::string name_of(const ::testing::TestParamInfo<Shape>& test) {
  const auto& [depth, pipelines, width, window, lag, kind, provisional] = test.param;
  return "D" + std::to_string(depth) + "_P" + std::to_string(pipelines) + "_W" + std::to_string(width) + "_M" +
         std::to_string(window) + "_lag" + std::to_string(lag) +
         (provisional > 0 ? "_" + std::string(to_string(kind)) + "_provisional" + std::to_string(provisional) : "");
}

Shape provisional(Shape shape, int left_out) {
  shape.provisional = left_out;
  return shape;
}

// ---- whole runs ----

class ClockworkRun : public ::testing::TestWithParam<Shape> {};

TEST_P(ClockworkRun, ThatNobodyDisturbsEqualsItsReference) {
  const Shape& shape = GetParam();
  HandoverChain chain(chain_options(shape.window, 5));
  run_checked(chain, generation_of(shape, names(0, shape.depth * shape.width)), RunEnd::kAllSteps);
}

TEST_P(ClockworkRun, OfTheSynchronousTwinEqualsPlainTraining) {
  Shape shape = GetParam();
  shape.kind = ScheduleKind::kClockworkSync;
  shape.lag = 0;
  shape.provisional = 0;
  HandoverChain chain(chain_options(shape.window, 4));
  run_checked(chain, generation_of(shape, names(0, shape.depth * shape.width)), RunEnd::kAllSteps);
  EXPECT_EQ(difference_from_undisturbed(chain), "");
}

TEST_P(ClockworkRun, WithStashedWeightsEqualsItsReference) {
  const Shape& shape = GetParam();
  TrainOptions options = chain_options(shape.window, 4);
  if (shape.provisional > 0) return;  // refused
  options.stash = true;
  HandoverChain chain(options);
  run_checked(chain, generation_of(shape, names(0, shape.depth * shape.width)), RunEnd::kAllSteps);
}

INSTANTIATE_TEST_SUITE_P(
    OfManyShapes, ClockworkRun,
    ::testing::Values(Shape{1, 1, 1, 3}, Shape{1, 1, 2, 5}, Shape{2, 1, 1, 2}, Shape{2, 1, 2, 11}, Shape{3, 1, 1, 3},
                      Shape{3, 1, 2, 16}, Shape{4, 2, 1, 4}, Shape{4, 2, 2, 19}, Shape{4, 1, 1, 11}, Shape{5, 1, 1, 16},
                      Shape{6, 3, 1, 7}, Shape{6, 1, 1, 13}, Shape{7, 1, 1, 9}, Shape{8, 4, 1, 8}, Shape{8, 4, 1, 21},
                      Shape{8, 2, 1, 13}, Shape{8, 2, 2, 33}, Shape{8, 1, 1, 12}, Shape{4, 2, 1, 8, 1},
                      Shape{4, 2, 1, 9, 2}, Shape{3, 1, 1, 8, 1}, Shape{8, 4, 1, 16, 3}, Shape{8, 2, 1, 18, 5},
                      Shape{2, 1, 1, 6, 3}, Shape{12, 3, 1, 18}, Shape{12, 6, 1, 12}, provisional({1, 1, 2, 9, 1}, 1),
                      provisional({2, 1, 1, 6}, 2), provisional({3, 1, 2, 19, 2}, 3), provisional({4, 2, 1, 12}, 2),
                      provisional({4, 2, 2, 19, 3}, 1), provisional({8, 2, 1, 25}, 4), provisional({8, 4, 2, 37}, 2),
                      provisional({12, 3, 1, 40, 1}, 5)),
    name_of);

// ---- stops ----

class ClockworkStops : public ::testing::TestWithParam<Shape> {
 protected:
  // After the super-round, or after the first that the window can be cut after.
  static Position expected_after(std::int64_t round) {
    const Shape& shape = GetParam();
    const scheduler::Clock clock(shape.depth, shape.pipelines, shape.lag);
    const std::int64_t size = std::int64_t{shape.pipelines} * shape.width;
    const std::int64_t rounds = (shape.window + size - 1) / size;
    const std::int64_t window = round / rounds;
    std::int64_t inside = round % rounds + 1;
    if (window > 0) inside = std::max<std::int64_t>(inside, clock.lagging_rounds());
    return {window * shape.window + std::min<std::int64_t>(shape.window, inside * size)};
  }
};

TEST_P(ClockworkStops, InAnySuperRoundEqualTheReference) {
  const Shape& shape = GetParam();
  const int size = shape.pipelines * shape.width;
  const int rounds = (shape.window + size - 1) / size;
  for (std::int64_t round = 0; round < 2 * rounds + 2; ++round) {
    SCOPED_TRACE(round);
    HandoverChain chain(chain_options(shape.window, 4));
    const int workers = shape.depth * shape.width;
    run_checked(chain, generation_of(shape, names(0, workers), after_round(round)));
    EXPECT_EQ(chain.position(), expected_after(round));
    // The rest of the window, and what follows, by the same shape on other workers.
    run_checked(chain, with_donors(generation_of(shape, names(100, workers)), names(0, workers)), RunEnd::kAllSteps);
  }
}

INSTANTIATE_TEST_SUITE_P(OfManyShapes, ClockworkStops,
                         ::testing::Values(Shape{2, 1, 1, 7}, Shape{3, 1, 1, 7}, Shape{4, 2, 1, 11}, Shape{4, 2, 2, 13},
                                           Shape{5, 1, 1, 9}, Shape{8, 4, 1, 18}, Shape{8, 2, 1, 13},
                                           Shape{4, 2, 1, 11, 2}, Shape{3, 1, 1, 8, 2}, Shape{8, 2, 1, 18, 3},
                                           provisional({2, 1, 1, 7}, 2), provisional({4, 2, 1, 11, 1}, 2),
                                           provisional({4, 2, 2, 19}, 1), provisional({8, 2, 1, 23}, 4)),
                         name_of);

TEST(ClockworkHandover, AChainOfPlansEqualsTheReferenceOfItsHistory) {
  HandoverChain chain(chain_options(26, 14));
  run_checked(chain, generation_of({4, 2, 1, 26}, {0, 1, 2, 3}, after_update(1)));
  EXPECT_EQ(chain.position(), Position{3 * 26}) << "the window that had begun is finished";
  run_checked(chain, {ScheduleKind::kAmdp, 2, 1, {3, 9}, {0, 1, 2}, after_round(16)});
  EXPECT_EQ(chain.position(), Position{4 * 26 + 8});
  run_checked(chain, generation_of({8, 2, 1, 26}, names(3, 8), after_round(5)));
  EXPECT_TRUE(chain.is_inside_window());
  run_checked(chain, with_donors(generation_of({3, 1, 1, 26}, {3, 30, 4}, after_round(12)), names(5, 6)));
  run_checked(chain, {ScheduleKind::kOneFOneB, 3, 2, names(30, 6), {3, 4}, after_round(3)});
  run_checked(chain, generation_of({4, 2, 3, 26, 1}, names(30, 12), after_round(8)));
  run_checked(chain, {ScheduleKind::kAmdp, 4, 2, names(30, 8), names(38, 4), after_round(5)});
  run_checked(chain, with_donors(generation_of({5, 1, 1, 26}, names(33, 5), after_update(10)), {30, 31, 32}));
  run_checked(chain, with_donors(generation_of({2, 1, 2, 26}, names(34, 4)), {33}), RunEnd::kAllSteps);
  EXPECT_EQ(chain.position(), Position{14 * 26});
}

// Cuts that are saved on the way take their part of the past with them; what the workers bring is the rest.
TEST(ClockworkHandover, BringsWhatIsNotSavedOfThePast) {
  for (const CheckpointPolicy& policy : {CheckpointPolicy{2, 0, false}, CheckpointPolicy{0, 3, false}}) {
    TrainOptions options = chain_options(26, 9);
    options.checkpoints = policy;
    HandoverChain chain(options);
    run_checked(chain, generation_of({4, 2, 1, 26}, {0, 1, 2, 3}, after_round(18)));
    run_checked(chain, with_donors(generation_of({3, 1, 1, 26}, {5, 0, 6}, after_round(35)), {1, 2, 3}));
    run_checked(chain, with_donors(generation_of({8, 2, 1, 26}, names(5, 8), after_round(20)), {0}));
    run_checked(chain, with_donors(generation_of({2, 1, 1, 26}, {5, 6}), names(7, 6)), RunEnd::kAllSteps);
  }
}

TEST(ClockworkHandover, AtAnEvaluationEndsBeforeOrAfterIt) {
  for (std::int64_t round = 11; round <= 18; ++round) {
    SCOPED_TRACE(round);
    TrainOptions options = chain_options(26, 5);
    options.evaluate_every = 1;
    options.evaluate_minibatches = 4;
    HandoverChain chain(options);
    run_checked(chain, generation_of({4, 2, 1, 26, 1}, {0, 1, 2, 3}, after_round(round)));
    EXPECT_EQ(chain.position(), Position{round / 13 * 26 + (round % 13 + 1) * 2}) << "every window starts drained";
    run_checked(chain, with_donors(generation_of({3, 1, 1, 26}, {3, 4, 5}), {0, 1, 2}), RunEnd::kAllSteps);
  }
}

// ---- mistakes that must be noticed ----

// Gives the first round of a window the minibatches of its last one, and the other way round.
class DealtWrongly final : public StageCompute {
 public:
  DealtWrongly(std::unique_ptr<StageCompute> stage, int window, int round)
      : stage_(std::move(stage)), window_(window), round_(round) {}

  void select_weights(WeightSet set) override { stage_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    return stage_->forward(dealt(position), std::move(input));
  }
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override {
    return stage_->backward_input(dealt(position), std::move(output_gradient), parity);
  }
  Status backward_weights(Position position, int parity) override {
    return stage_->backward_weights(dealt(position), parity);
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return stage_->evaluate(index, std::move(input));
  }
  Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  Position dealt(Position position) const {
    const std::int64_t inside = position.value % window_;
    if (inside < round_) return {position.value + window_ - round_};
    return inside < window_ - round_ ? position : Position{position.value - window_ + round_};
  }

  std::unique_ptr<StageCompute> stage_;
  int window_;
  int round_;
};

TEST(ClockworkControls, RoundsThatAreDealtWronglyAreNoticed) {
  const Shape shape{4, 2, 1, 8};
  for (const bool wrongly : {false, true}) {
    HandoverChain chain(chain_options(shape.window, 3));
    chain.change_run = [&](int, TrainOptions&, TrainHooks& hooks) {
      if (!wrongly) return;
      hooks.make_stage = [&, make_stage = hooks.make_stage](const StageRequest& request) {
        return std::make_unique<DealtWrongly>(make_stage(request), shape.window, shape.pipelines);
      };
    };
    ASSERT_TRUE(chain.run(generation_of(shape, names(0, 4))));
    EXPECT_EQ(difference_from_reference(chain) != "", wrongly);
  }
}

// The weights that a minibatch meets follow from the number of pipelines and the lag.
TEST(ClockworkControls, AHistoryThatNamesAnotherOrderIsNoticed) {
  HandoverChain chain(chain_options(16, 4));
  ASSERT_TRUE(chain.run(generation_of({8, 4, 1, 16, 1}, names(0, 8))));
  ASSERT_EQ(difference_from_reference(chain), "");
  for (const auto& [pipelines, lag] : {std::pair(4, 0), std::pair(4, 2), std::pair(2, 1), std::pair(1, 1)}) {
    std::vector<HistoryEntry> entries = history_entries(chain);
    for (HistoryEntry& entry : entries) {
      entry.plan.pipelines = pipelines;
      entry.plan.lag = lag;
    }
    EXPECT_NE(difference_from_history(chain, entries), "") << pipelines << " pipelines, lag " << lag;
  }
}

// ---- chains that nobody thought of ----

TEST(ClockworkHandover, RandomChainsEqualTheReferenceOfTheirHistory) {
  run_random_chains(200, 8,
                    {ScheduleKind::kClockwork, ScheduleKind::kClockwork, ScheduleKind::kClockworkSync,
                     ScheduleKind::kAmdp, ScheduleKind::kOneFOneB});
}

}  // namespace
}  // namespace everstep::trainer
