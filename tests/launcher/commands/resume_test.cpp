#include <filesystem>

#include <gmock/gmock.h>

#include "tests/launcher/checkpoint/checkpoint_commands.h"

namespace everstep::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A job of three steps that were all made.
class ResumeCommand : public CheckpointCommands {
 protected:
  ResumeCommand() {
    const storage::Settings settings{{"emulate", "1:2"}, {"lr", "0.01"},   {"lr-steps", "3"},
                                     {"steps", "3"},     {"window", "16"}, {"workers", "1"}};
    job_.commit({.step = 1, .more_settings = settings});
    newest_ = job_.commit({.step = 3, .more_settings = settings});
  }

  CommandRun resume(const std::vector<std::string>& args) const {
    std::vector<std::string> all{"resume"};
    all.insert(all.end(), args.begin(), args.end());
    return run_command(all);
  }
  std::string refusal(const std::vector<std::string>& args) const {
    std::vector<std::string> all{"resume"};
    all.insert(all.end(), args.begin(), args.end());
    return failure_of(all, 64);
  }

  storage::CatalogEntry newest_;
};

TEST_F(ResumeCommand, NeedsNothingBesideThePlace) {
  for (const std::string& from : {path("checkpoints"), path("checkpoints/job")}) {
    const CommandRun run = resume({"--from=" + from});
    EXPECT_EQ(run.exit_code, 0) << run.log;
    EXPECT_THAT(run.log, HasSubstr("event=nothing_to_do step=3 steps=3"));
  }
}

TEST_F(ResumeCommand, RefusesChangesThatTrainWouldRefuse) {
  EXPECT_THAT(refusal({"--from=" + path("checkpoints"), "--lr=0.02", "--steps=3"}),
              HasSubstr("--lr (was 0.01, is 0.02)"));
}

TEST_F(ResumeCommand, SaysWhatIsWrongWithThePlace) {
  EXPECT_THAT(refusal({}), HasSubstr("--from is missing"));
  EXPECT_THAT(refusal({"--from=" + path("nowhere")}), HasSubstr("is no directory"));
  EXPECT_THAT(refusal({"--from=" + path("checkpoints"), "--step=2"}), HasSubstr("2"));
  EXPECT_THAT(refusal({"--from=" + path("checkpoints/job"), "--job=other"}), HasSubstr("--from names the job job"));
  EXPECT_THAT(refusal({"--from=" + path("checkpoints"), "--resume=3"}), HasSubstr("--resume"));
}

TEST_F(ResumeCommand, TakesOneCheckpointsDirectory) {
  const std::string manifest = job_.path_of_manifest(newest_);
  const std::string from = manifest.substr(0, manifest.rfind('/'));
  const CommandRun run = resume({"--from=" + from});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, HasSubstr("event=nothing_to_do step=3"));
  EXPECT_THAT(refusal({"--from=" + from, "--step=1"}), HasSubstr("--from names a checkpoint already"));
}

TEST_F(ResumeCommand, RefusesASecretForAJobThatHasNone) {
  const std::string secret = file("secret", "0123456789abcdef0123\n");
  std::filesystem::permissions(secret, std::filesystem::perms(0600));
  EXPECT_THAT(refusal({"--from=" + path("checkpoints"), "--secret-file=" + secret}),
              AllOf(HasSubstr("was made without a secret"), HasSubstr("leave --secret-file out")));
}

TEST_F(ResumeCommand, StartsFromTheStepThatIsNamed) {
  const CommandRun run = resume({"--from=" + path("checkpoints"), "--step=1", "--steps=1"});
  EXPECT_EQ(run.exit_code, 0) << run.log;
  EXPECT_THAT(run.log, HasSubstr("event=nothing_to_do step=1 steps=1"));
}

}  // namespace
}  // namespace everstep::launcher
