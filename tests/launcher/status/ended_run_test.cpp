#include "launcher/status/ended_run.h"

#include <filesystem>

#include <gmock/gmock.h>

#include "launcher/job/elastic_defaults.h"
#include "storage/json/json.h"
#include "tests/launcher/checkpoint/small_job.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The files of a run of `everstep train`, with two checkpoints.
class EndedRunTest : public CommandFiles {
 protected:
  EndedRunTest() {
    SmallJob job(path("run/checkpoints"), small_gpt());
    job.commit({.step = 10, .loss = 3.5});
    job.commit({.step = 20, .loss = 2.25});
    EXPECT_TRUE(write_file(directory().config(), print_config(config())).ok());
  }

  RunDirectory directory() const { return {path("run")}; }
  Config config() const {
    return train_config({"--workers=2", "--data=x", "--steps=100", "--output=" + path("run"),
                         "--checkpoint-dir=" + path("run/checkpoints")});
  }
  std::string resume() const { return "everstep resume --from=" + path("run/checkpoints/job"); }
  CommandRun status(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args{"status", "--dir=" + path("run")};
    args.insert(args.end(), more.begin(), more.end());
    return run_command(args);
  }
};

TEST_F(EndedRunTest, IsToldFromItsFiles) {
  const Failure stopped({ErrorCode::kCancelled, "stopped after 20 of 100 steps: SIGINT", ""});
  leave_word(directory(), config(), "steps      20\n", stopped);
  const CommandRun told = status();
  EXPECT_EQ(told.exit_code, 0) << told.log;
  EXPECT_THAT(told.out, StartsWith("job job: stopped\n  step        20 of 100, loss 2.2500\n  HEAD        step 20, "));
  EXPECT_THAT(told.out, HasSubstr("  ended       stopped after 20 of 100 steps: SIGINT, exit code 75, 20"));
  EXPECT_THAT(told.out, HasSubstr("  resume      " + resume() + "\n"));
  const auto json = storage::parse_json(status({"--json"}).out);
  ASSERT_TRUE(json) << json.error();
  EXPECT_EQ(*json->find("state"), storage::Json("stopped"));
  EXPECT_EQ(*json->find("exit_code"), storage::Json(75));
  EXPECT_EQ(*json->find("resume"), storage::Json(resume()));
}

TEST_F(EndedRunTest, NeedsNoCommandToGoOnWhenItIsFinished) {
  leave_word(directory(), config(), "steps      100\n", {});
  EXPECT_THAT(status().out, StartsWith("job job: finished\n"));
  EXPECT_THAT(status().out, HasSubstr("  ended       all steps are made, exit code 0, "));
  EXPECT_THAT(status().out, Not(HasSubstr("resume")));
}

TEST_F(EndedRunTest, IsToldOfARunThatWasKilled) {
  EXPECT_THAT(status().out, StartsWith("job job: killed\n  step        20 of 100, loss 2.2500\n"));
  EXPECT_THAT(status().out, HasSubstr("  ended       everstep train ended without a word\n  resume      " + resume()));
  // Its own etcd has gone with it, the file that names it has not.
  file("run/job.conf", "etcd = http://127.0.0.1:1\njob = job\n");
  EXPECT_THAT(status().out, StartsWith("job job: killed\n"));
}

TEST_F(EndedRunTest, EndsAWatchAtOnce) {
  const CommandRun watched = status({"--watch"});
  EXPECT_EQ(watched.exit_code, 0) << watched.log;
  EXPECT_EQ(watched.out, status().out);
}

TEST_F(EndedRunTest, IsNoneWhileSomebodyHoldsItsDirectory) {
  EXPECT_EQ(phase_of(path("none")), RunPhase::kNone);
  EXPECT_EQ(phase_of(path("run")), RunPhase::kEnded);
  {
    const auto lock = RunLock::take(path("run"));
    ASSERT_TRUE(lock) << lock.error();
    EXPECT_EQ(phase_of(path("run")), RunPhase::kStarting);
    EXPECT_FALSE(RunLock::take(path("run"))) << "one at a time";
    EXPECT_THAT(failure_of({"status", "--dir=" + path("run")}, 64), HasSubstr("is not there yet"));
    Config fixed = config();
    set_setting(fixed, "etcd", "none");
    ASSERT_TRUE(write_file(directory().config(), print_config(fixed)).ok());
    EXPECT_EQ(phase_of(path("run")), RunPhase::kFixed);
  }
  EXPECT_EQ(phase_of(path("run")), RunPhase::kEnded);
}

TEST_F(EndedRunTest, AnswersWhoeverAsksSomethingOfIt) {
  leave_word(directory(), config(), "", {});
  for (const char* command : {"stop", "scale", "drain"}) {
    std::vector<std::string> args{command, "--dir=" + path("run")};
    if (args.front() != "stop") args.emplace_back("2");
    EXPECT_THAT(failure_of(args, 64), HasSubstr("has ended (hint: everstep status --dir=")) << command;
  }
  EXPECT_THAT(failure_of({"status", "--dir=" + path("none")}, 64), HasSubstr("no job runs in"));
}

TEST_F(EndedRunTest, LeavesTheCommandThatGoesOnWithAFailure) {
  const Error lost{ErrorCode::kUnavailable, "etcd does not answer", ""};
  const Outcome told = leave_word(directory(), config(), "", Failure(lost));
  ASSERT_TRUE(told);
  EXPECT_EQ(told->error.hint, resume() + " goes on");
  EXPECT_EQ(told->exit_code, ExitCode::kUnreachable);
  const Outcome hinted = leave_word(directory(), config(), "", Failure({lost.code, lost.message, "look at its log"}));
  EXPECT_EQ(hinted->error.hint, "look at its log; " + resume() + " goes on");
  EXPECT_EQ(leave_word(directory(), config(), "resume     " + resume() + "\n", Failure(lost))->error.hint, "")
      << "the summary has told it";
  std::filesystem::remove_all(path("run/checkpoints"));
  EXPECT_EQ(leave_word(directory(), config(), "", Failure(lost))->error.hint, "") << "nothing was saved";
}

TEST(RunWord, ReadsBackWhatItWrote) {
  const RunWord word{"failed", "worker 1: \"x\"\n", 69, 1'794'952'799'999, "/a b/c", "everstep resume", "steps 1\n"};
  const auto read = parse_run_word(to_text(word));
  ASSERT_TRUE(read) << read.error();
  EXPECT_EQ(*read, word);
  EXPECT_FALSE(parse_run_word("{}"));
  EXPECT_FALSE(parse_run_word("not JSON"));
}

}  // namespace
}  // namespace everstep::launcher
