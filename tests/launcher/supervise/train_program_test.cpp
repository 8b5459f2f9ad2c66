#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <unistd.h>

#include "storage/json/json_reader.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;

// Runs the real program, which starts real worker processes that neither come nor go.
class TrainProgram : public CommandFiles {
 protected:
  std::string output() const { return path("run"); }

  // A small model, so that starting the processes is what takes the time.
  std::vector<std::string> small(std::vector<std::string> args, const std::string& name = "run") const {
    for (const char* arg : {"--layers=6", "--hidden=16", "--heads=2", "--sequence=16", "--minibatch=2"}) {
      args.emplace_back(arg);
    }
    args.insert(args.begin(), {"train", "--etcd=none", "--output=" + path(name)});
    return args;
  }

  void await_first_update(RunningProgram& program) const {
    const std::string metrics = output() + "/metrics.jsonl";
    std::error_code missing;
    while (std::filesystem::file_size(metrics, missing) == 0 || missing) {
      if (is_gone_within(program.pid(), milliseconds(10))) {
        ADD_FAILURE() << program.wait(seconds(0)).log;
        break;
      }
    }
  }

  // Four workers that would wait for minutes, once they train.
  std::unique_ptr<RunningProgram> start_long_run(const std::string& timeout = "60") {
    auto program = std::make_unique<RunningProgram>(small({"--workers=4", "--depth=4", "--window=4", "--emulate=2:4",
                                                           "--steps=100000", "--timeout=" + timeout, "--json"}));
    await_first_update(*program);
    workers_ = program->children();
    EXPECT_EQ(workers_.size(), 4U);
    return program;
  }

  void expect_nothing_left() const {
    for (const pid_t worker : workers_) EXPECT_TRUE(is_gone_within(worker, seconds(2))) << worker;
  }

  // Those whose logs are there, dead or alive.
  std::vector<pid_t> logged_workers() const {
    std::vector<pid_t> found;
    for (int rank = 0; std::filesystem::exists(path("run/worker-" + std::to_string(rank) + ".log")); ++rank) {
      const std::string log = text_of("run/worker-" + std::to_string(rank) + ".log");
      found.push_back(static_cast<pid_t>(std::stol(log.substr(log.find(" pid=") + 5))));
    }
    return found;
  }

  pid_t worker(int rank) const { return workers_.at(rank); }

 private:
  std::vector<pid_t> workers_;
};

// A token file of nanoGPT.
std::string uint16_tokens(const std::vector<int>& ids) {
  std::string bytes;
  for (const int id : ids) bytes += {static_cast<char>(id & 0xFF), static_cast<char>(id >> 8)};
  return bytes;
}

std::string last_line(const std::string& text) {
  const std::string without_end = text.substr(0, text.find_last_not_of('\n') + 1);
  return without_end.substr(without_end.rfind('\n') + 1);
}

TEST_F(TrainProgram, TrainsAndTellsHowItWent) {
  std::string corpus;
  while (corpus.size() < 8000) corpus += "the quick brown fox jumps over the lazy dog. ";
  const Ended ended =
      run_program(small({"--workers=2", "--depth=2", "--data=" + file("corpus.txt", corpus), "--steps=30", "--window=8",
                         "--lr=0.01", "--dropout=0", "--eval-every=15", "--json"}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  const auto json = storage::parse_json(ended.out);
  ASSERT_TRUE(json.ok()) << ended.out;
  const storage::JsonReader result(*json);
  EXPECT_EQ(*result.integer_at("steps"), 30);
  EXPECT_LT(*result.number_at("loss"), 4);  // ln 256 = 5.5 at the start
  EXPECT_LT(*result.number_at("validation_loss"), 4);
  EXPECT_GT(*result.number_at("tokens_per_s"), 0);
  EXPECT_GT(*result.number_at("busy"), 0);
  EXPECT_EQ(*result.member("plan")->text_at("kind"), "clockwork");
  EXPECT_GT(*result.member("memory")->integer_at("peak_bytes"), 0);

  const std::string metrics = text_of("run/metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 30);
  EXPECT_THAT(last_line(metrics), HasSubstr("\"step\":30,"));
  EXPECT_THAT(last_line(metrics), HasSubstr("\"validation_loss\":"));
  EXPECT_THAT(text_of("run/config.txt"), HasSubstr("# --eval-every\n"));
  for (const char* log : {"run/worker-0.log", "run/worker-1.log"})
    EXPECT_THAT(text_of(log), HasSubstr("event=finished"));
}

TEST_F(TrainProgram, HasTheSameLossesUnderEverySynchronousPlanWhenReproducible) {
  const std::string data = "--data=" + file("corpus.txt", std::string(500, 'a') + std::string(500, 'b'));
  const auto losses_of = [&](const std::string& name, const std::vector<std::string>& plan) {
    std::vector<std::string> args{data, "--steps=3", "--window=8", "--reproducible"};
    args.insert(args.end(), plan.begin(), plan.end());
    const Ended ended = run_program(small(args, name));
    EXPECT_EQ(ended.exit_code, 0) << ended.log;
    std::istringstream lines(text_of(name + "/metrics.jsonl"));
    std::vector<double> losses;
    for (std::string line; std::getline(lines, line);) {
      losses.push_back(*storage::JsonReader(*storage::parse_json(line)).number_at("loss"));
    }
    return losses;
  };
  const std::vector<double> alone = losses_of("alone", {"--workers=1"});
  EXPECT_EQ(alone.size(), 3U);
  EXPECT_EQ(losses_of("groups", {"--workers=4", "--schedule=1f1b", "--depth=2", "--width=2"}), alone);
  EXPECT_EQ(losses_of("chunks", {"--workers=2", "--schedule=interleaved"}), alone);
}

TEST_F(TrainProgram, TracesEmulatedDevices) {
  const Ended ended = run_program(small({"--workers=4", "--schedule=clockwork", "--depth=4", "--pipelines=2",
                                         "--emulate=1:2", "--window=8", "--steps=5", "--trace=" + path("trace.json")}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(ended.out, HasSubstr("plan       clockwork D=4 P=2 W=1, window 8\n"));
  const auto json = storage::parse_json(text_of("trace.json"));
  ASSERT_TRUE(json.ok()) << json.error();
  const auto events = storage::JsonReader(*json).elements_at("traceEvents");
  std::int64_t forwards = 0;
  for (const storage::JsonReader& event : *events) {
    if (!event.has("cat") || *event.text_at("cat") != "forward") continue;
    ++forwards;
    EXPECT_GE(*event.number_at("dur"), 1000);
  }
  EXPECT_EQ(forwards, 5 * 8 * 4);
  EXPECT_FALSE(std::filesystem::exists(path("run/worker-0.ops")));
}

// Each worker has the weights of another's stage to wait for: 3,000 of them at least, at half a megabyte per second.
TEST_F(TrainProgram, EmulatesLinksOnWhichAnUpdateTakesItsTime) {
  const Ended ended =
      run_program(small({"--workers=4", "--schedule=clockwork", "--depth=4", "--pipelines=2", "--emulate=1:1:1",
                         "--emulate-link=0.004", "--window=8", "--steps=3", "--trace=" + path("trace.json")}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  const auto json = storage::parse_json(text_of("trace.json"));
  ASSERT_TRUE(json.ok()) << json.error();
  const auto events = storage::JsonReader(*json).elements_at("traceEvents");
  int updates = 0;
  for (const storage::JsonReader& event : *events) {
    if (!event.has("cat") || *event.text_at("cat") != "update") continue;
    ++updates;
    EXPECT_GE(*event.number_at("dur"), 4 * 3000 / 0.5);
  }
  EXPECT_EQ(updates, 3 * 4);
}

TEST_F(TrainProgram, NamesTheWorkerThatWasKilled) {
  const auto program = start_long_run();
  send_signal(worker(2), SIGKILL);
  const Ended ended = program->wait(seconds(20));
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_EQ(last_line(ended.log),
            "everstep: worker 2 was ended by SIGKILL (hint: its last words are in " + output() + "/worker-2.log)");
  EXPECT_THAT(text_of("run/worker-0.log"), HasSubstr("event=last_ops"));
  expect_nothing_left();
}

TEST_F(TrainProgram, TellsWhereAWorkerCrashed) {
  const auto program = start_long_run();
  send_signal(worker(1), SIGSEGV);
  const Ended ended = program->wait(seconds(20));
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_THAT(last_line(ended.log), ContainsRegex("worker 1 was ended by SIGSEGV in generation [0-9]+ at step [0-9]+ "
                                                  "\\([FBRCU][0-9.@]+ (running|waiting|done)\\)"));
  EXPECT_THAT(text_of("run/worker-1.log"), HasSubstr("event=crashed signal=SIGSEGV worker=1 pid="));
  expect_nothing_left();
}

TEST_F(TrainProgram, NamesTheWorkerThatHangs) {
  const auto program = start_long_run("3");
  send_signal(worker(1), SIGSTOP);
  const Ended ended = program->wait(seconds(20));
  EXPECT_EQ(ended.exit_code, 69);
  EXPECT_THAT(last_line(ended.log), HasSubstr("everstep: worker 1 gives no sign of life"));
  expect_nothing_left();
}

TEST_F(TrainProgram, StopsAtTheEndOfAWindowWhenAsked) {
  const auto program = start_long_run();
  program->signal(SIGINT);
  const Ended ended = program->wait(seconds(20));
  EXPECT_EQ(ended.exit_code, 75);
  EXPECT_THAT(ended.log, HasSubstr("event=stopping signal=SIGINT"));
  EXPECT_THAT(last_line(ended.log), HasSubstr(" of 100000 steps: SIGINT"));
  const auto json = storage::parse_json(ended.out);
  ASSERT_TRUE(json.ok()) << ended.out;
  const std::string metrics = text_of("run/metrics.jsonl");
  EXPECT_EQ(*storage::JsonReader(*json).integer_at("steps"), std::count(metrics.begin(), metrics.end(), '\n'));
  expect_nothing_left();
}

TEST_F(TrainProgram, LeavesAtOnceWhenAskedTwice) {
  const auto program = start_long_run();
  send_signal(worker(3), SIGSTOP);  // the end of the window cannot come
  program->signal(SIGTERM);
  std::this_thread::sleep_for(milliseconds(100));
  program->signal(SIGTERM);
  const Ended ended = program->wait(seconds(1));
  EXPECT_EQ(ended.exit_code, 75);
  EXPECT_EQ(last_line(ended.log), "everstep: left at once: SIGTERM");
  EXPECT_EQ(ended.out, "");
  expect_nothing_left();
}

TEST_F(TrainProgram, LeavesNoWorkerBehindWhenItIsKilled) {
  const auto program = start_long_run();
  send_signal(worker(0), SIGSTOP);
  program->signal(SIGKILL);
  EXPECT_EQ(program->wait(seconds(1)).exit_code, -SIGKILL);
  expect_nothing_left();
}

TEST_F(TrainProgram, NamesATokenOutsideTheVocabularyThatItMeetsOnTheWay) {
  constexpr std::int64_t kSamples = 400;
  constexpr std::int64_t kSequence = 16;
  constexpr std::int64_t kPlace = 123 * kSequence + 9;
  const std::string data = file("tokens.bin", uint16_tokens(std::vector<int>(kSamples * kSequence + 1, 299)));
  RunningProgram program(small({"--workers=4", "--depth=4", "--window=8", "--steps=100000", "--seed=7",
                                "--vocabulary=300", "--validation-fraction=0", "--data=" + data}));
  await_first_update(program);
  // What is there at the start is found at the start, in files of this size.
  std::fstream(data, std::ios::in | std::ios::out | std::ios::binary).seekp(2 * kPlace) << uint16_tokens({300});
  const Ended ended = program.wait(seconds(60));
  EXPECT_EQ(ended.exit_code, 78);
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(last_line(ended.log),
              MatchesRegex("everstep: worker [0-3]: " + data + ": token " + std::to_string(kPlace) +
                           " has the id 300, outside the model's vocabulary of 300 .hint: .*"));
  const std::vector<pid_t> workers = logged_workers();
  EXPECT_EQ(workers.size(), 4U);
  for (const pid_t worker : workers) EXPECT_TRUE(is_gone_within(worker, seconds(2))) << worker;
}

}  // namespace
}  // namespace everstep::launcher
