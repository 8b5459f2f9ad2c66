#include <algorithm>
#include <csignal>
#include <thread>

#include <gmock/gmock.h>

#include "base/version.h"
#include "launcher/job/train_request.h"
#include "launcher/status/job_address.h"
#include "launcher/supervise/etcd_process.h"
#include "storage/json/json.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"
#include "tests/launcher/status/hand_written_job.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int kUsage = 64;
constexpr int kUnreachable = 69;

// The commands against a real etcd with a job whose workers are only written down.
class JobCommands : public CommandFiles {
 protected:
  // One server for all tests, so that each costs milliseconds. Keys go with the test.
  static elastic::EtcdCluster& cluster() {
    static elastic::EtcdCluster etcd;
    return etcd;
  }
  ~JobCommands() override {
    (void)store->transact({{}, {elastic::remove_prefix(std::string(elastic::kAllJobs))}, {}}, 5s);
  }

  static std::string etcd() { return "--etcd=" + cluster().endpoint(0); }
  static std::vector<std::string> words(const std::vector<std::string>& command, bool names_job = true) {
    std::vector<std::string> all = command;
    all.push_back(etcd());
    if (names_job) all.emplace_back("--job=first");
    return all;
  }
  static std::string output_of(const std::vector<std::string>& args) {
    const CommandRun run = run_command(args);
    EXPECT_EQ(run.exit_code, 0) << run.log;
    return run.out;
  }
  std::string value(const std::string& key) const {
    const auto reply = store->transact({{}, {elastic::get(key)}, {}}, 5s);
    EXPECT_TRUE(reply) << reply.error();
    return reply && !reply->reads[0].empty() ? reply->reads[0].front().value : "nothing";
  }

  std::unique_ptr<elastic::KvStore> store = cluster().connect();
  HandWrittenJob job{*store, "first"};
};

TEST_F(JobCommands, ShowAJobAndAllJobs) {
  job.train();
  EXPECT_THAT(output_of(words({"status"})), StartsWith("job first: training\n  step        120 of 1000"));
  EXPECT_THAT(output_of(words({"status"}, false)), HasSubstr("\nfirst  training  120/1000"));
  EXPECT_EQ(output_of(words({"status"}, false)), output_of(words({"job", "ls"}, false)));
  const auto json = storage::parse_json(output_of(words({"status", "--json"})));
  ASSERT_TRUE(json) << json.error();
  EXPECT_EQ(*json->find("state"), storage::Json("training"));
  const auto list = storage::parse_json(output_of(words({"job", "ls", "--json"}, false)));
  ASSERT_TRUE(list) << list.error();
}

TEST_F(JobCommands, FindTheJobByTheDirectoryOfItsRun) {
  job.train();
  CommandSpec spec{.name = "train"};
  spec.options = train_options();
  const auto config = merge_config(spec, {.args = *parse_args(spec, {etcd(), "--job=first"})});
  ASSERT_TRUE(config && write_job_address(path("."), *config));
  EXPECT_THAT(output_of({"status", "--dir=" + path(".")}), StartsWith("job first: training"));
  EXPECT_EQ(output_of({"drain", "w2", "--dir=" + path(".")}), "w2 (abcd0002) is asked to leave\n");
}

TEST_F(JobCommands, AskAWorkerToLeave) {
  job.train();
  EXPECT_EQ(output_of(words({"drain", "w2"})), "w2 (abcd0002) is asked to leave\n");
  EXPECT_THAT(value(job.keys().drain_request(numbered(2))), HasSubstr("reason everstep drain\n"));
  EXPECT_EQ(failure_of(words({"drain", "w9"}), kUsage),
            "no worker is called 'w9' (hint: there is w1 (abcd0001), w2 (abcd0002))");
}

TEST_F(JobCommands, WaitForAWorkerThatLeaves) {
  job.train();
  std::jthread worker([this] {
    while (value(job.keys().drain_request(numbered(1))) == "nothing") std::this_thread::sleep_for(20ms);
    job.remove(job.keys().member(numbered(1)));
  });
  EXPECT_EQ(output_of(words({"drain", "abcd0001", "--wait=30"})),
            "w1 (abcd0001) is asked to leave\nw1 (abcd0001) has left\n");
}

TEST_F(JobCommands, DoNotWaitForever) {
  job.train();
  const CommandRun run = run_command(words({"drain", "w1", "--wait=0.3"}));
  EXPECT_EQ(run.exit_code, kUnreachable);
  EXPECT_THAT(run.log, StartsWith("everstep: w1 (abcd0001) has not left after 0.3 s"));
}

TEST_F(JobCommands, AskForMoreWorkers) {
  job.train();
  EXPECT_EQ(output_of(words({"scale", "8"})),
            "job first is asked to have 8 local workers; with those of other hosts it has 2 now\n");
  EXPECT_THAT(value(job.keys().scale_request()), HasSubstr("workers 8\n"));
  for (const char* number : {"0", "129", "many", "-1"}) {
    std::vector<std::string> args = words({"scale"});
    args.insert(args.end(), {"--", number});
    EXPECT_THAT(failure_of(args, kUsage), HasSubstr("expected an integer from 1 to 128"));
  }
}

TEST_F(JobCommands, StopAJob) {
  EXPECT_THAT(failure_of(words({"stop"}), kUsage), HasSubstr("has no workers"));
  job.train();
  EXPECT_EQ(output_of(words({"stop", "--wait=0"})), "job first is asked to stop\n");
  EXPECT_THAT(value(job.keys().stop_request()), HasSubstr("reason everstep stop\n"));
  std::jthread workers([this] {
    std::this_thread::sleep_for(300ms);
    job.remove(job.keys().member(numbered(1)));
    job.remove(job.keys().member(numbered(2)));
  });
  EXPECT_THAT(output_of(words({"stop"})),
              StartsWith("job first is asked to stop\njob first has stopped\njob first: no workers"));
  job.write(job.keys().finished(), "finished by somebody\n");
  EXPECT_THAT(failure_of(words({"stop"}), kUsage), HasSubstr("is finished"));
}

TEST_F(JobCommands, RemoveAJob) {
  job.train();
  EXPECT_THAT(failure_of(words({"job", "rm", "first"}, false), kUsage), HasSubstr("has 2 workers that live"));
  EXPECT_THAT(output_of(words({"job", "rm", "first", "--force"}, false)),
              StartsWith("removed job first, which was not finished: "));
  EXPECT_EQ(output_of(words({"job", "ls"}, false)), "no jobs\n");
  EXPECT_THAT(failure_of(words({"job", "rm", "first"}, false), kUsage), HasSubstr("there is no job 'first'"));
  EXPECT_THAT(failure_of(words({"job", "rm", "a/b"}, false), kUsage), HasSubstr("the name of the job is refused"));
}

TEST_F(JobCommands, KnowNoOtherJob) {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"status"}, {"drain", "w1"}, {"scale", "2"}, {"stop"}, {"worker"}}) {
    std::vector<std::string> args = command;
    args.push_back(etcd());
    args.emplace_back("--job=other");
    EXPECT_THAT(failure_of(args, kUsage), HasSubstr("there is no job 'other' in this etcd")) << command.front();
  }
}

TEST_F(JobCommands, SuggestTheJobThatWasMeant) {
  const HandWrittenJob second(*store, "second");
  const auto answer = [&](const std::string& name) { return failure_of({"status", etcd(), "--job=" + name}, kUsage); };
  EXPECT_EQ(answer("frist"), "there is no job 'frist' in this etcd (hint: did you mean first?)");
  EXPECT_EQ(answer("other"), "there is no job 'other' in this etcd (hint: there is first, second)");
  EXPECT_EQ(failure_of({"job", "rm", "secnd", etcd()}, kUsage),
            "there is no job 'secnd' in this etcd (hint: did you mean second?)");
}

TEST_F(JobCommands, WatchAJobToItsEnd) {
  job.train();
  RunningProgram program(words({"status", "--watch=0.1"}));
  std::this_thread::sleep_for(500ms);
  job.write(job.keys().finished(), "finished by somebody\n");
  const Ended ended = program.wait(30s);
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("\njob first: finished\n")) << "the last state is shown";
}

TEST_F(JobCommands, WatchAJobThatIsNotThereYet) {
  RunningProgram program({"status", etcd(), "--job=second", "--watch=0.1"});
  EXPECT_TRUE(elastic::becomes_true(
      [&] { return program.log().find("there is no job 'second' in this etcd") != std::string::npos; }, 30s));
  const HandWrittenJob second(*store, "second");
  second.write(second.keys().finished(), "finished by somebody\n");
  const Ended ended = program.wait(30s);
  EXPECT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_EQ(ended.out.substr(0, ended.out.find('\n')), "job second: finished");
  EXPECT_EQ(std::ranges::count(ended.log, '\n'), 1) << "said once: " << ended.log;
  EXPECT_THAT(ended.log, HasSubstr(" event=watch_waits reason="));
}

TEST_F(JobCommands, SayThatEtcdDoesNotAnswer) {
  const std::string nowhere = "--etcd=http://127.0.0.1:" + std::to_string(unused_port());
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"status"}, {"worker", "--job=first"}}) {
    std::vector<std::string> args = command;
    args.push_back(nowhere);
    EXPECT_THAT(failure_of(args, kUnreachable), HasSubstr("cannot be used")) << command.front();
  }
}

TEST_F(JobCommands, RefuseOptionsThatMakeNoSense) {
  EXPECT_THAT(failure_of(words({"status", "--watch=0"}), kUsage), HasSubstr("--watch=0"));
  EXPECT_THAT(failure_of({"status"}, kUsage), HasSubstr("where is the job?"));
  EXPECT_THAT(failure_of({"status", "--etcd=http://10.0.0.1:2379"}, kUsage), HasSubstr("http://10.0.0.1:2379"));
  EXPECT_THAT(failure_of(words({"drain"}), kUsage), HasSubstr("WORKER"));
  EXPECT_THAT(failure_of(words({"worker", "--name=../../etc"}), kUsage), HasSubstr("is no name of a worker"));
  EXPECT_THAT(failure_of(words({"worker", "--port-range=9"}), kUsage), HasSubstr("--port-range"));
  EXPECT_THAT(failure_of({"worker", etcd(), "--job=a/b"}, kUsage), HasSubstr("--job=a/b"));
}

TEST_F(JobCommands, AddNoWorkerOfAnotherBuild) {
  elastic::JobSpec spec;
  spec.build = std::string(kVersion) + "-other";
  ASSERT_TRUE(create_job(*store, "second", spec, "", std::nullopt));
  EXPECT_THAT(failure_of({"worker", etcd(), "--job=second"}, kUsage), HasSubstr("all workers need the same build"));
}

TEST_F(JobCommands, AddNoWorkerWithoutTheSecret) {
  elastic::JobSpec spec;
  spec.build = kVersion;
  ASSERT_TRUE(create_job(*store, "second", spec, "a secret of the job", std::nullopt));
  EXPECT_THAT(failure_of({"worker", etcd(), "--job=second"}, kUsage), HasSubstr("job 'second' has a secret"));
  file("wrong", "another secret than that\n");
  std::filesystem::permissions(path("wrong"), std::filesystem::perms::owner_read);
  EXPECT_THAT(failure_of({"worker", etcd(), "--job=second", "--secret-file=" + path("wrong")}, kUsage),
              HasSubstr("another secret"));
}

TEST_F(JobCommands, AskNothingOfAJobWithASecretWithoutIt) {
  const HandWrittenJob secret_job(*store, "second", "a secret of the job");
  secret_job.train();
  file("wrong", "another secret than that\n");
  file("right", "a secret of the job\n");
  for (const char* name : {"wrong", "right"}) {
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_read);
  }
  const auto before = secret_job.write("/elsewhere", "now");
  const std::vector<std::vector<std::string>> commands{{"drain", "w1", "--job=second"},
                                                       {"scale", "2", "--job=second"},
                                                       {"stop", "--wait=0", "--job=second"},
                                                       {"job", "rm", "second", "--force"}};
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> args = command;
    args.push_back(etcd());
    EXPECT_THAT(failure_of(args, kUsage), HasSubstr("job 'second' has a secret (hint: --secret-file=FILE"));
    args.push_back("--secret-file=" + path("wrong"));
    EXPECT_THAT(failure_of(args, kUsage), HasSubstr("job 'second' was started with another secret"));
  }
  EXPECT_EQ(secret_job.write("/elsewhere", "now"), before + 1) << "nothing was written";
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> args = command;
    args.insert(args.end(), {etcd(), "--secret-file=" + path("right")});
    EXPECT_FALSE(output_of(args).empty());
    if (command.front() == "job") continue;
    const auto asked = store->transact({{}, {elastic::list(secret_job.keys().live() + "ask/")}, {}}, 5s);
    ASSERT_EQ(asked->reads[0].size(), 1U) << command.front();
    const elastic::KeyValue& item = asked->reads[0].front();
    EXPECT_TRUE(secret_job.seal().open(item.key, item.value)) << command.front();
    secret_job.remove(item.key);
  }
}

TEST_F(JobCommands, ShowAJobAgainAndAgain) {
  job.train();
  for (const bool json : {false, true}) {
    std::vector<std::string> args = words({"status", "--watch=0.2"});
    if (json) args.emplace_back("--json");
    RunningProgram program(args);
    std::this_thread::sleep_for(1500ms);
    program.signal(SIGINT);
    const Ended ended = program.wait(10s);
    EXPECT_EQ(ended.exit_code, 0) << ended.log;
    EXPECT_EQ(ended.log, "");
    const std::string start = json ? "{\"job\"" : "job first: training\n";
    const std::size_t second = ended.out.find(start, 1);
    EXPECT_THAT(ended.out, StartsWith(start));
    ASSERT_NE(second, std::string::npos) << ended.out;
    EXPECT_EQ(ended.out[second - 1], '\n');
    EXPECT_EQ(ended.out.find('\x1b'), std::string::npos) << "it is no terminal";
  }
}

TEST_F(JobCommands, HaveHelpWithAnExample) {
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"worker"}, {"status"}, {"drain"}, {"scale"}, {"stop"}, {"resume"}, {"job", "ls"}, {"job", "rm"}}) {
    std::vector<std::string> args = command;
    args.emplace_back("--help");
    std::string name = command.front();
    if (command.size() > 1) name += " " + command.back();
    EXPECT_THAT(output_of(args), HasSubstr("  everstep " + name + " "));
  }
}

}  // namespace
}  // namespace everstep::launcher
