#include "launcher/job/checkpoint_request.h"

#include <gmock/gmock.h>

#include "launcher/job/train_request.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

Outcome outcome_of(std::vector<std::string> args) {
  args.insert(args.end(), {"--workers=1", "--data=x"});
  Outcome failure;
  read_train_request(train_config(args), kHostMemory, failure);
  return failure;
}

std::string refused_request(const std::vector<std::string>& args) {
  const Outcome failure = outcome_of(args);
  return failure ? failure->error.line() : "nothing was refused";
}

CheckpointRequest request(std::vector<std::string> args) {
  args.insert(args.end(), {"--workers=1", "--data=x", "--checkpoint-dir=saves"});
  return *train_request(args).checkpoints;
}

TEST(CheckpointRequest, IsNothingWithoutADirectory) {
  EXPECT_FALSE(train_request({"--workers=1", "--data=x"}).checkpoints);
  EXPECT_THAT(refused_request({"--resume"}), HasSubstr("--resume=newest: needs a place for checkpoints"));
  EXPECT_THAT(refused_request({"--keep-last=4"}), HasSubstr("add --checkpoint-dir=DIR"));
}

TEST(CheckpointRequest, HasDefaults) {
  const CheckpointRequest read = request({});
  EXPECT_EQ(read.store.path(), "saves/job");
  EXPECT_EQ(read.policy, (trainer::CheckpointPolicy{10, 0, true}));
  EXPECT_EQ(read.retention, (storage::RetentionOptions{3, 0, 0}));
  EXPECT_EQ(read.resume, ResumeWish{});
}

TEST(CheckpointRequest, SavesByUpdatesOrByRounds) {
  EXPECT_EQ(request({"--checkpoint-every=10"}).policy, (trainer::CheckpointPolicy{10, 0, true}));
  EXPECT_EQ(request({"--checkpoint-every=3r"}).policy, (trainer::CheckpointPolicy{0, 3, true}));
  EXPECT_EQ(train_request({"--workers=1", "--data=x", "--checkpoint-dir=d", "--checkpoint-every=3r"})
                .options.checkpoints.every_rounds,
            3);
  for (const char* wrong : {"--checkpoint-every=0", "--checkpoint-every=r", "--checkpoint-every=1.5",
                            "--checkpoint-every=3 r", "--checkpoint-every=-1", "--checkpoint-every=3rr"}) {
    EXPECT_THAT(refused_request({"--checkpoint-dir=saves", wrong}), HasSubstr("expected a number of updates"));
  }
}

TEST(CheckpointRequest, ResumesInFourWays) {
  using Kind = ResumeWish::Kind;
  EXPECT_EQ(request({"--resume"}).resume, (ResumeWish{Kind::kNewest, 0}));
  EXPECT_EQ(request({"--resume=120"}).resume, (ResumeWish{Kind::kStep, 120}));
  EXPECT_EQ(request({"--resume=auto"}).resume, (ResumeWish{Kind::kAuto, 0}));
  EXPECT_EQ(request({"--resume=no"}).resume, ResumeWish{});
  EXPECT_THAT(refused_request({"--checkpoint-dir=saves", "--resume=-1"}),
              HasSubstr("expected a step, newest, auto or no"));
}

TEST(CheckpointRequest, KeepsAtLeastTwo) {
  EXPECT_EQ(request({"--keep-last=2", "--keep-every=10", "--keep-best=1"}).retention,
            (storage::RetentionOptions{2, 10, 1}));
  EXPECT_THAT(refused_request({"--checkpoint-dir=saves", "--keep-last=1"}), HasSubstr("--keep-last=1"));
}

TEST(CheckpointRequest, EndsTheLearningRateWhereItIsTold) {
  const auto total = [](std::vector<std::string> args) {
    args.insert(args.end(), {"--workers=1", "--data=x", "--window=2", "--minibatch=3"});
    return train_request(args).options.learning_rate.total_samples;
  };
  EXPECT_EQ(total({"--steps=10"}), 60);
  EXPECT_EQ(total({"--steps=10", "--lr-steps=100"}), 600);
}

}  // namespace
}  // namespace everstep::launcher
