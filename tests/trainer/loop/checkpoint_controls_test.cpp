#include <gtest/gtest.h>

#include "tests/trainer/loop/checkpoint_support.h"

// A checkpoint with a part left out must not pass for a whole one: what the comparisons of checkpoint_test are worth.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;
using storage::StateKind;

// Adds the gradients of one minibatch's weights late: together with those of the chunk's next one.
class PostponesOne final : public StageCompute {
 public:
  PostponesOne(std::unique_ptr<StageCompute> stage, Position late) : stage_(std::move(stage)), late_(late) {}

  void select_weights(WeightSet set) override { stage_->select_weights(set); }
  Result<Output> forward(Position position, Buffer input) override {
    return stage_->forward(position, std::move(input));
  }
  Result<Buffer> backward_input(Position position, Buffer output_gradient, int parity) override {
    return stage_->backward_input(position, std::move(output_gradient), parity);
  }
  Status backward_weights(Position position, int parity) override {
    is_owed_ = is_owed_ || position == late_;
    if (position == late_) return {};
    if (std::exchange(is_owed_, false)) EVERSTEP_TRY(stage_->backward_weights(late_, parity));
    return stage_->backward_weights(position, parity);
  }
  Result<Output> evaluate(std::int64_t index, Buffer input) override {
    return stage_->evaluate(index, std::move(input));
  }
  Noted<bool> take_overflow(int parity) override { return stage_->take_overflow(parity); }

 private:
  std::unique_ptr<StageCompute> stage_;
  Position late_;
  bool is_owed_ = false;
};

class IncompleteCheckpoint : public testing::TestWithParam<TestPlan> {
 protected:
  IncompleteCheckpoint() {
    options_.steps = 4;
    options_.checkpoints.every_updates = 2;
  }

  void run_whole() { whole_ = train_with_checkpoints(options_, *data_); }

  std::string difference_after_resume(const MemoryCheckpoint& from, bool continues_live) const {
    const CheckpointedRun rest = train_with_checkpoints(options_, *data_, &from, continues_live);
    return difference_between(whole_.checkpoints.back(), rest.checkpoints.back());
  }

  TrainOptions options_ = under_plan(tiny_training(ModelFamily::kGpt, 3), GetParam());
  std::unique_ptr<DataSource> data_ = shipped_corpus(options_.model);
  CheckpointedRun whole_;
};

TEST_P(IncompleteCheckpoint, WithoutTheOlderVersionIsTold) {
  run_whole();
  const MemoryCheckpoint live = whole_.checkpoints.front();
  ASSERT_EQ(live.kind, CutKind::kLive);
  EXPECT_EQ(difference_after_resume(live, true), "");
  EXPECT_NE(difference_after_resume(live, false), "");
}

TEST_P(IncompleteCheckpoint, WithoutMomentsIsTold) {
  run_whole();
  MemoryCheckpoint live = whole_.checkpoints.front();
  live.drop(StateKind::kOptimizer);
  EXPECT_NE(difference_after_resume(live, true), "");
}

TEST_P(IncompleteCheckpoint, WithoutGradientsIsTold) {
  options_.checkpoints = {.every_updates = 0, .every_rounds = 2, .at_end = true};
  run_whole();
  MemoryCheckpoint cut = whole_.checkpoints.front();
  ASSERT_EQ(cut.kind, CutKind::kInWindow);
  EXPECT_EQ(difference_after_resume(cut, false), "");
  cut.drop(StateKind::kGradients);
  EXPECT_NE(difference_after_resume(cut, false), "");
}

// The window's sums have them in time: the run itself has the right bits, and only the cut is wrong.
TEST_P(IncompleteCheckpoint, WithWeightsAddedAfterItsCaptureIsTold) {
  options_.checkpoints = {.every_updates = 0, .every_rounds = 2, .at_end = true};
  run_whole();
  const Position last{whole_.checkpoints.front().position.value - 1};
  const auto postpone = [last](TrainHooks& hooks) {
    hooks.make_stage = [last, make_stage = hooks.make_stage](const StageRequest& request) {
      return std::make_unique<PostponesOne>(make_stage(request), last);
    };
  };
  const CheckpointedRun late = train_with_checkpoints(options_, *data_, nullptr, false, {}, postpone);
  EXPECT_EQ(difference_between(whole_.checkpoints.back(), late.checkpoints.back()), "");
  ASSERT_EQ(late.checkpoints.front().kind, CutKind::kInWindow);
  EXPECT_NE(difference_after_resume(late.checkpoints.front(), false), "");
}

TEST_P(IncompleteCheckpoint, WithTheWrongNumberOfUpdatesIsTold) {
  run_whole();
  MemoryCheckpoint live = whole_.checkpoints.front();
  ++live.applied;
  EXPECT_NE(difference_after_resume(live, true), "");
}

INSTANTIATE_TEST_SUITE_P(OfAFullPipeline, IncompleteCheckpoint,
                         testing::Values(TestPlan{ScheduleKind::kAmdp, 4, 1, 12}, clockwork(4, 2, 1, 12),
                                         clockwork(3, 1, 1, 12, 1)),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace everstep::trainer
