#include "tests/launcher/supervise/checkpoint_program.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <system_error>

#include <gmock/gmock.h>

namespace everstep::launcher {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kLive[] = {"--workers=2", "--depth=2"};
constexpr const char* kAlone[] = {"--workers=1"};
constexpr const char* kTwoGroups[] = {"--workers=4", "--schedule=1f1b", "--depth=2", "--width=2"};

TEST_F(CheckpointProgram, GoesOnUnderTheSamePlanAsIfNothingHadHappened) {
  const Losses whole = losses_of_whole_run(kLive);
  kill_worker_after_first_commit(with(kLive, {"--checkpoint-every=4"}));
  const Ended ended = run_program(with(kLive, {"--resume", "--output=" + path("resumed")}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("event=resumed"));
  EXPECT_THAT(ended.log, HasSubstr("kind=live plan=same pipeline=continued"));
  expect_continues(whole, losses_in("resumed"));
  EXPECT_THAT(ended.out, HasSubstr("checkpoint step " + std::to_string(kSteps)));
}

TEST_F(CheckpointProgram, GoesOnUnderEverySynchronousPlanWithTheSameBits) {
  const Losses whole = losses_of_whole_run(kAlone);
  kill_worker_after_first_commit(with(kTwoStages, {"--checkpoint-every=4"}));
  const Ended ended = run_program(with(kTwoGroups, {"--resume", "--output=" + path("resumed")}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("kind=flush plan=changed"));
  expect_continues(whole, losses_in("resumed"));
}

TEST_F(CheckpointProgram, GoesOnInsideAWindowAtAnotherDepth) {
  const Losses whole = losses_of_whole_run(kAlone);
  kill_worker_after_first_commit(with(kTwoStages, {"--checkpoint-every=3r"}));
  const Ended ended = run_program(with(kAlone, {"--resume", "--output=" + path("resumed")}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.log, HasSubstr("kind=in-window plan=changed"));
  expect_continues(whole, losses_in("resumed"));
}

TEST_F(CheckpointProgram, GoesOnWithoutItsSecretOnlyIfThatIsSaid) {
  const std::string secret = "--secret-file=" + file("secret", "0123456789abcdef0123\n");
  std::filesystem::permissions(path("secret"), std::filesystem::perms(0600));
  const Ended first = run_program(with(kAlone, {"--steps=2", secret}));
  ASSERT_EQ(first.exit_code, 0) << first.log;
  const auto train = [&](const char* steps, const std::vector<std::string>& more) {
    std::vector<std::string> all{"--resume", steps};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(with(kAlone, all));
  };
  const auto resume = [&](const char* steps, const std::vector<std::string>& more) {
    std::vector<std::string> all{"resume", "--from=" + path("saves"), "--etcd=none", "--output=" + path("run"), steps};
    all.insert(all.end(), more.begin(), more.end());
    return run_program(all);
  };
  for (const Ended& refused :
       {train("--steps=4", {}), train("--steps=4", {"--resume=auto"}), resume("--steps=4", {})}) {
    EXPECT_EQ(refused.exit_code, 64);
    EXPECT_THAT(refused.log, AllOf(HasSubstr("was made with a secret"), HasSubstr("--drop-secret")));
  }
  EXPECT_THAT(train("--steps=4", {secret, "--drop-secret"}).log, HasSubstr("does not go with --secret-file"));
  const auto expect_trained = [](const Ended& ended) { EXPECT_EQ(ended.exit_code, 0) << ended.log; };
  expect_trained(resume("--steps=4", {secret}));
  expect_trained(resume("--steps=6", {"--drop-secret"}));
  expect_trained(train("--steps=8", {}));
  const Ended late = train("--steps=10", {secret});
  EXPECT_EQ(late.exit_code, 64);
  EXPECT_THAT(late.log, HasSubstr("was made without a secret"));
  EXPECT_THAT(late.log, Not(HasSubstr("damaged")));
}

TEST_F(CheckpointProgram, RefusesToGoOnWithOtherSettingsOrToStartOver) {
  const Ended first = run_program(with(kAlone, {"--steps=4", "--checkpoint-every=2"}));
  ASSERT_EQ(first.exit_code, 0) << first.log;
  const auto refusal = [&](const std::vector<std::string>& args) {
    const Ended ended = run_program(with(kAlone, args));
    EXPECT_EQ(ended.exit_code, 64);
    return ended.log;
  };
  EXPECT_THAT(refusal({"--output=" + path("again")}), HasSubstr("already holds checkpoints (hint: --resume"));
  EXPECT_THAT(refusal({"--resume", "--dropout=0.5", "--seed=9"}),
              HasSubstr("--dropout (was 0.1, is 0.5), --seed (was 1, is 9)"));
  EXPECT_THAT(refusal({"--resume=3"}), HasSubstr("3"));
  EXPECT_THAT(refusal({"--resume", "--job=other"}), HasSubstr("other"));
}

TEST_F(CheckpointProgram, MayBeStartedAgainAndAgainWithTheSameCommand) {
  const auto args = with(kAlone, {"--steps=4", "--checkpoint-every=2", "--resume=auto", "--output=" + path("run")});
  const Ended first = run_program(args);
  ASSERT_EQ(first.exit_code, 0) << first.log;
  EXPECT_THAT(first.log, Not(HasSubstr("event=resumed")));
  const Ended second = run_program(
      with(kAlone, {"--steps=4", "--checkpoint-every=2", "--resume=auto", "--json", "--output=" + path("second")}));
  EXPECT_EQ(second.exit_code, 0) << second.log;
  EXPECT_THAT(second.log, HasSubstr("event=nothing_to_do step=4 steps=4"));
  EXPECT_THAT(second.out, HasSubstr("{\"steps\":4,\"loss\":"));
  EXPECT_THAT(second.out, HasSubstr("\"last_step\":4}}"));
  EXPECT_FALSE(std::filesystem::exists(path("second")));
  const Ended longer =
      run_program(with(kAlone, {"--steps=6", "--checkpoint-every=2", "--resume=auto", "--output=" + path("run")}));
  EXPECT_EQ(longer.exit_code, 0) << longer.log;
  EXPECT_THAT(longer.log, HasSubstr("event=resumed step=4"));
}

TEST_F(CheckpointProgram, GrowsWithoutBendingTheLearningRate) {
  const std::vector<std::string> whole =
      with(kAlone, {"--steps=8", "--lr-steps=4", "--output=" + path("whole"), "--checkpoint-dir=" + path("elsewhere")});
  ASSERT_EQ(run_program(whole).exit_code, 0);
  ASSERT_EQ(run_program(with(kAlone, {"--steps=4"})).exit_code, 0);
  const Ended longer = run_program(with(kAlone, {"--steps=8", "--resume", "--output=" + path("longer")}));
  ASSERT_EQ(longer.exit_code, 0) << longer.log;
  EXPECT_THAT(longer.log, Not(HasSubstr("learning_rate_end_changed")));
  const Losses expected = losses_in("whole");
  for (const auto& [step, loss] : losses_in("longer")) EXPECT_EQ(loss, expected.at(step)) << "step " << step;
  const Ended bent = run_program(with(kAlone, {"--steps=10", "--lr-steps=10", "--resume", "--output=" + path("bent")}));
  EXPECT_EQ(bent.exit_code, 0) << bent.log;
  EXPECT_THAT(bent.log, HasSubstr("event=learning_rate_end_changed old=4 new=10"));
}

TEST_F(CheckpointProgram, NamesTheOptionIfItsDirectoryIsNone) {
  file("plain", "text");
  for (const std::string& place : {path("plain"), std::string("/proc/nope")}) {
    const Ended ended = run_program(with(kAlone, {"--checkpoint-dir=" + place}));
    EXPECT_EQ(ended.exit_code, 64) << ended.log;
    EXPECT_THAT(ended.log, HasSubstr("--checkpoint-dir=" + place + ": cannot "));
  }
}

TEST_F(CheckpointProgram, SavesWhenItIsStopped) {
  const auto program = start_until_commit(with(kLive, {"--checkpoint-every=4", kUntilStopped}));
  program->signal(SIGTERM);
  const Ended ended = program->wait(seconds(30));
  EXPECT_EQ(ended.exit_code, 75) << ended.log;
  const std::string stopped = "stopped after ";
  const std::size_t place = ended.log.find(stopped);
  ASSERT_NE(place, std::string::npos) << ended.log;
  const int step = std::stoi(ended.log.substr(place + stopped.size()));
  EXPECT_THAT(ended.out, HasSubstr("checkpoint step " + std::to_string(step) + ","));
}

TEST_F(CheckpointProgram, FallsBackLoudlyWhenTheNewestIsDamaged) {
  const Ended first = run_program(with(kAlone, {"--steps=4", "--checkpoint-every=1"}));
  ASSERT_EQ(first.exit_code, 0) << first.log;
  damage(checkpoints().front().manifest, "weights");
  const Ended second = run_program(with(kAlone, {"--steps=8", "--resume", "--output=" + path("second")}));
  EXPECT_EQ(second.exit_code, 0) << second.log;
  EXPECT_THAT(second.log, HasSubstr("event=checkpoint_damaged"));
  EXPECT_THAT(second.log, HasSubstr("event=resumed step="));
  EXPECT_THAT(second.log, Not(HasSubstr("event=resumed step=4 ")));

  for (const storage::CatalogEntry& entry : checkpoints()) damage(entry.manifest, "weights");
  const Ended third = run_program(with(kAlone, {"--steps=9", "--resume=auto", "--output=" + path("third")}));
  EXPECT_EQ(third.exit_code, 65) << third.log;
  EXPECT_FALSE(std::filesystem::exists(path("third")));
}

TEST_F(CheckpointProgram, SurvivesTheLossOfItsDirectory) {
  const auto program = start_until_commit(with(kLive, {"--checkpoint-every=2"}));
  // Somebody writes into it at the same time.
  for (std::error_code error; std::filesystem::exists(path("saves"), error);) {
    std::filesystem::remove_all(path("saves"), error);
  }
  const Ended ended = program->wait(seconds(60));
  EXPECT_EQ(ended.exit_code, 78) << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("steps      " + std::to_string(kSteps)));
  EXPECT_THAT(ended.log, HasSubstr("event=checkpoint_failed"));
  EXPECT_THAT(ended.log, HasSubstr("training ended, but its last checkpoint could not be saved"));
}

}  // namespace
}  // namespace everstep::launcher
