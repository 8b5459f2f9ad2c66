#include <gtest/gtest.h>

#include "tests/trainer/loop/checkpoint_support.h"

// A checkpoint with a part left out must not pass for a whole one: what the comparisons of checkpoint_test are worth.
namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;
using storage::StateKind;

class IncompleteCheckpoint : public testing::Test {
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

  TrainOptions options_ = under_plan(tiny_training(ModelFamily::kGpt, 3), {ScheduleKind::kAmdp, 4, 1, 12});
  std::unique_ptr<DataSource> data_ = shipped_corpus(options_.model);
  CheckpointedRun whole_;
};

TEST_F(IncompleteCheckpoint, WithoutTheOlderVersionIsTold) {
  run_whole();
  const MemoryCheckpoint live = whole_.checkpoints.front();
  ASSERT_EQ(live.kind, CutKind::kLive);
  EXPECT_EQ(difference_after_resume(live, true), "");
  EXPECT_NE(difference_after_resume(live, false), "");
}

TEST_F(IncompleteCheckpoint, WithoutMomentsIsTold) {
  run_whole();
  MemoryCheckpoint live = whole_.checkpoints.front();
  live.drop(StateKind::kOptimizer);
  EXPECT_NE(difference_after_resume(live, true), "");
}

TEST_F(IncompleteCheckpoint, WithoutGradientsIsTold) {
  options_.checkpoints = {.every_updates = 0, .every_rounds = 2, .at_end = true};
  run_whole();
  MemoryCheckpoint cut = whole_.checkpoints.front();
  ASSERT_EQ(cut.kind, CutKind::kInWindow);
  EXPECT_EQ(difference_after_resume(cut, false), "");
  cut.drop(StateKind::kGradients);
  EXPECT_NE(difference_after_resume(cut, false), "");
}

TEST_F(IncompleteCheckpoint, WithTheWrongNumberOfUpdatesIsTold) {
  run_whole();
  MemoryCheckpoint live = whole_.checkpoints.front();
  ++live.applied;
  EXPECT_NE(difference_after_resume(live, true), "");
}

}  // namespace
}  // namespace everstep::trainer
