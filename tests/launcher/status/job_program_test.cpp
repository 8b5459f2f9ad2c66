#include <algorithm>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>

#include "storage/json/json.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using elastic::becomes_true;
using testing::HasSubstr;
using testing::Not;

// A job of emulated workers that `everstep train` runs with an etcd of its own, and the commands that users have for
// it.
class JobOfThisHost : public CommandFiles {
 protected:
  std::vector<std::string> train(const std::vector<std::string>& more) const {
    std::vector<std::string> args{"train",         "--emulate=5:10",      "--window=8",         "--layers=2",
                                  "--hidden=32",   "--heads=2",           "--workers=2",        "--output=" + run(),
                                  "--lease-ttl=5", "--join-debounce=0.2", "--join-interval=0.2"};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  std::string run() const { return path("run"); }
  std::string directory() const { return "--dir=" + run(); }

  // Nothing as long as there is no job.
  storage::Json status() const {
    if (!std::filesystem::exists(run() + "/job.conf")) return {};
    const CommandRun ended = run_command({"status", directory(), "--json"});
    auto json = storage::parse_json(ended.out);
    return json ? *std::move(json) : storage::Json();
  }
  // Whether it trains with exactly these workers within a minute.
  bool trains_with(std::vector<std::string> names) const {
    return becomes_true(
        [&] {
          const storage::Json now = status();
          if (now.find("state") == nullptr || *now.find("state") != storage::Json("training")) return false;
          std::vector<std::string> there;
          for (const storage::Json& worker : std::get<storage::Json::Array>(now.find("workers")->value())) {
            if (*worker.find("state") == storage::Json("training")) {
              there.push_back(std::get<std::string>(worker.find("name")->value()));
            }
          }
          std::sort(there.begin(), there.end());
          return there == names;
        },
        60s);
  }
};

TEST_F(JobOfThisHost, GrowsShrinksStopsAndGoesOnAsAsked) {
  RunningProgram job(train({"--steps=100000"}));
  ASSERT_TRUE(trains_with({"w0", "w1"})) << text_of("run/worker-0.log");

  RunningProgram worker({"worker", "--config=" + run() + "/job.conf", "--name=extra", "--output=" + run()});
  ASSERT_TRUE(trains_with({"extra", "w0", "w1"})) << text_of("run/worker-extra.log");
  EXPECT_EQ(run_command({"drain", "extra", directory(), "--wait=60"}).exit_code, 0);
  const Ended left = worker.wait(60s);
  EXPECT_EQ(left.exit_code, 75);
  EXPECT_EQ(left.log, "") << "the log is in the file";
  ASSERT_TRUE(trains_with({"w0", "w1"}));

  EXPECT_EQ(run_command({"scale", "3", directory()}).exit_code, 0);
  ASSERT_TRUE(trains_with({"w0", "w1", "w2"}));
  EXPECT_EQ(run_command({"scale", "1", directory()}).exit_code, 0);
  ASSERT_TRUE(trains_with({"w0"}));

  RunningProgram watch({"status", directory(), "--watch=0.2"});
  const CommandRun asked = run_command({"stop", directory()});
  EXPECT_EQ(asked.exit_code, 0) << asked.log;
  const Ended stopped = job.wait(60s);
  EXPECT_EQ(stopped.exit_code, 75) << stopped.log;
  // The same to whoever started it and to whoever stopped it.
  const std::string resume = "everstep resume --from=" + run() + "/checkpoints/job";
  EXPECT_THAT(stopped.out, HasSubstr("\noutput     " + run() + "\nresume     " + resume + "\n"));
  EXPECT_EQ(asked.out, "job job is asked to stop\njob job has stopped\n" + stopped.out);
  // Its etcd is gone, its files are not.
  const CommandRun told = run_command({"status", directory()});
  EXPECT_EQ(told.exit_code, 0) << told.log;
  EXPECT_THAT(told.out, testing::StartsWith("job job: stopped\n  step        "));
  EXPECT_THAT(told.out, HasSubstr("\n  resume      " + resume + "\n"));
  const Ended watched = watch.wait(60s);
  EXPECT_EQ(watched.exit_code, 0) << watched.log;
  EXPECT_THAT(watched.out, testing::EndsWith("\n" + told.out)) << "the watch ends with the job";

  // Only the files are left.
  const std::string checkpoints = run() + "/checkpoints";
  const auto list =
      storage::parse_json(run_command({"checkpoint", "ls", "--json", "--checkpoint-dir=" + checkpoints}).out);
  ASSERT_TRUE(list) << list.error();
  const auto& rows = std::get<storage::Json::Array>(list->find("checkpoints")->value());
  ASSERT_FALSE(rows.empty());
  const auto step = std::get<std::int64_t>(rows.front().find("step")->value());
  RunningProgram again({"resume", "--from=" + checkpoints, "--steps=" + std::to_string(step + 5), "--workers=2",
                        "--output=" + path("second")});
  const Ended finished = again.wait(100s);
  EXPECT_EQ(finished.exit_code, 0) << finished.log;
  EXPECT_THAT(finished.log, HasSubstr("event=resumed step=" + std::to_string(step)));
  const CommandRun audit = run_command({"audit", checkpoints});
  EXPECT_EQ(audit.exit_code, 0) << audit.log;
  EXPECT_THAT(audit.out, HasSubstr("minibatches, each exactly once"));
}

// Its etcd takes neither plain text nor a client without a certificate of this job's.
TEST_F(JobOfThisHost, IsClosedToEverybodyElse) {
  RunningProgram job(train({"--steps=100000"}));
  std::vector<std::string> elsewhere = train({"--steps=100000"});
  std::replace(elsewhere.begin(), elsewhere.end(), "--output=" + run(), "--output=" + path("other"));
  RunningProgram other(elsewhere);
  ASSERT_TRUE(trains_with({"w0", "w1"}));
  ASSERT_TRUE(becomes_true([&] { return std::filesystem::exists(path("other/job.conf")); }, 60s));
  const std::string conf = text_of("run/job.conf");
  const auto told = [&](const std::string& text, const std::string& name) {
    const std::size_t at = text.find(name + " = ") + name.size() + 3;
    return text.substr(at, text.find('\n', at) - at);
  };
  const std::string url = told(conf, "etcd");
  const std::string ca = "--etcd-ca=" + told(conf, "etcd-ca");
  ASSERT_THAT(url, HasSubstr("https://127.0.0.1:"));
  ASSERT_NE(told(conf, "etcd-key"), told(text_of("other/job.conf"), "etcd-key"));
  const std::vector<std::vector<std::string>> strangers{
      {"--etcd=http" + url.substr(5)},
      {"--etcd=" + url, ca},
      {"--etcd=" + url, ca, "--etcd-cert=" + told(text_of("other/job.conf"), "etcd-cert"),
       "--etcd-key=" + told(text_of("other/job.conf"), "etcd-key")}};
  for (std::vector<std::string> words : strangers) {
    words.insert(words.begin(), {"stop", "--job=job"});
    EXPECT_THAT(failure_of(words, 69), HasSubstr("cannot be used"));
  }
  EXPECT_EQ(run_command({"stop", directory(), "--wait=60"}).exit_code, 0) << "the one who started it gets in";
  EXPECT_EQ(job.wait(60s).exit_code, 75);
  other.signal(SIGINT);
  other.wait(60s);
}

TEST_F(JobOfThisHost, TellsHowToJoinItAndKeepsLogsToItsOwner) {
  RunningProgram job(train({"--steps=100000"}));
  ASSERT_TRUE(trains_with({"w0", "w1"}));
  EXPECT_THAT(job.log(), HasSubstr("join=\"everstep worker --config=" + run() + "/job.conf\""));
  RunningProgram worker({"worker", "--config=" + run() + "/job.conf", "--name=extra", "--output=" + run()});
  ASSERT_TRUE(trains_with({"extra", "w0", "w1"}));
  for (const std::string name : {"worker-0.log", "worker-1.log", "worker-extra.log", "etcd.log"}) {
    const auto mode = std::filesystem::status(run() + "/" + name).permissions();
    EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write) << name;
    EXPECT_THAT(text_of("run/" + name), Not(HasSubstr("event=weights"))) << "no places in memory";
  }
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(60s).exit_code, 75);
}

TEST_F(JobOfThisHost, IsWatchedFromBeforeItsFirstToAfterItsLastMoment) {
  RunningProgram watch({"status", directory(), "--watch=0.1"});
  ASSERT_TRUE(becomes_true([&] { return watch.log().find("no job runs in " + run()) != std::string::npos; }, 30s));
  RunningProgram job(train({"--steps=40"}));
  const Ended finished = job.wait(100s);
  EXPECT_EQ(finished.exit_code, 0) << finished.log;
  EXPECT_THAT(finished.out, testing::Not(HasSubstr("resume")));
  const Ended watched = watch.wait(60s);
  EXPECT_EQ(watched.exit_code, 0) << watched.log;
  const std::string told = run_command({"status", directory()}).out;
  EXPECT_THAT(told, HasSubstr("job job: finished\n  step        40 of 40, loss "));
  EXPECT_THAT(watched.out, testing::EndsWith(told));
}

// Nothing was said, and yet all is known.
TEST_F(JobOfThisHost, TellsAfterAKillWhereToGoOn) {
  RunningProgram job(train({"--steps=100000", "--checkpoint-every=2"}));
  ASSERT_TRUE(becomes_true([&] { return job.log().find("event=checkpoint_saved") != std::string::npos; }, 60s));
  RunningProgram watch({"status", directory(), "--watch=0.2"});
  job.signal(SIGKILL);
  EXPECT_EQ(job.wait(60s).exit_code, -SIGKILL);
  const Ended watched = watch.wait(60s);
  EXPECT_EQ(watched.exit_code, 0) << watched.log;
  EXPECT_THAT(watched.out, HasSubstr("job job: killed\n"));
  EXPECT_THAT(watched.out, HasSubstr("\n  resume      everstep resume --from=" + run() + "/checkpoints/job\n"));
}

TEST_F(JobOfThisHost, SaysHowToGoOnWhenItsLastWorkerLeft) {
  RunningProgram job(train({"--steps=100000"}));
  ASSERT_TRUE(trains_with({"w0", "w1"}));
  EXPECT_EQ(run_command({"drain", "w1", directory(), "--wait=60"}).exit_code, 0);
  EXPECT_EQ(run_command({"drain", "w0", directory()}).exit_code, 0);
  const Ended left = job.wait(60s);
  EXPECT_EQ(left.exit_code, 75);
  EXPECT_THAT(left.out + left.log, HasSubstr("everstep resume --from=" + run() + "/checkpoints/job"));
}

TEST_F(JobOfThisHost, LogsWithTheTimeInFront) {
  RunningProgram job(train({"--steps=3"}));
  const Ended ended = job.wait(100s);
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  for (const std::string& log : {ended.log, text_of("run/worker-0.log")}) {
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_THAT(line, testing::ContainsRegex("^time=20[0-9-]+T[0-9:.]+Z (t=[0-9.]+ )?event="));
    }
  }
}

TEST_F(JobOfThisHost, LetsAWorkerLeaveByASignal) {
  RunningProgram job(train({"--steps=100000"}));
  ASSERT_TRUE(trains_with({"w0", "w1"}));
  RunningProgram worker({"worker", "--config=" + run() + "/job.conf", "--name=extra"});
  ASSERT_TRUE(trains_with({"extra", "w0", "w1"}));
  worker.signal(SIGTERM);
  const Ended left = worker.wait(60s);
  EXPECT_EQ(left.exit_code, 75) << left.log;
  EXPECT_THAT(left.log, HasSubstr("event=leaving reason=SIGTERM"));
  EXPECT_TRUE(trains_with({"w0", "w1"}));
  job.signal(SIGINT);
  EXPECT_EQ(job.wait(60s).exit_code, 75);
}

}  // namespace
}  // namespace everstep::launcher
