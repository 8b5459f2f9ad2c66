#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>

#include "base/text.h"
#include "storage/json/json_reader.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"

namespace everstep::launcher {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Four workers; one killed, one started, two killed at once, two started.
constexpr const char* kTrace =
    "0,add,a\n0,add,b\n0,add,c\n0,add,d\n"
    "60000,remove,b\n"
    "120000,add,e\n"
    "210000,remove,a\n210000,remove,d\n"
    "270000,add,f\n270000,add,g\n"
    "360000,remove,c\n";

class TraceRehearsalProgram : public CommandFiles {
 protected:
  std::vector<std::string> words(const std::vector<std::string>& more) const {
    std::vector<std::string> args{"replay-trace",     file("trace.csv", kTrace), "--hours=0.1",
                                  "--speedup=36",     "--emulate=5:10",          "--window=8",
                                  "--most-workers=4", "--checkpoint-every=5",    "--output=" + path("run")};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }

  // Those whose command line names something in the directory of the test.
  std::vector<std::string> processes_left() const {
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      std::string line;
      std::getline(file, line);
      if (parse_number<int>(entry.path().filename().string()) && line.find(path("run")) != std::string::npos) {
        left.push_back(line);
      }
    }
    return left;
  }
};

TEST_F(TraceRehearsalProgram, CarriesOutEveryChangeAndTheJobSurvives) {
  const Ended ended = run_program(words({"--json"}));
  ASSERT_EQ(ended.exit_code, 0) << ended.log;
  EXPECT_THAT(processes_left(), testing::IsEmpty());
  for (const char* event : {"kill=w1", "start=w4", "kill=w0 kill=w3", "start=w5 start=w6"}) {
    EXPECT_THAT(ended.log, HasSubstr(event));
  }
  const auto parsed = storage::parse_json(ended.out);
  ASSERT_TRUE(parsed) << ended.out;
  const storage::JsonReader json(*parsed);
  EXPECT_TRUE(*json.boolean_at("settled")) << ended.log;
  EXPECT_EQ(*json.integer_at("problems"), 0);
  EXPECT_GT(*json.integer_at("minibatches_proven"), 0);
  EXPECT_GE(*json.integer_at("generations"), 3) << "two losses, each with a plan of its own";
  const auto workers = json.member("workers");
  EXPECT_EQ(*workers->integer_at("killed"), 3);
  EXPECT_EQ(*workers->integer_at("started"), 3);
  EXPECT_EQ(*workers->integer_at("ended_by_themselves"), 0);
  const double lost =
      *json.number_at("stall_seconds") + *json.number_at("redone_seconds") + *json.number_at("pause_seconds");
  EXPECT_NEAR(*json.number_at("goodput"), 1 - lost / *json.number_at("trace_seconds"), 1e-9);
  EXPECT_NEAR(*json.number_at("seconds_per_change"), lost / 4, 1e-9);
  EXPECT_LE(*json.integer_at("updates") * 8, *json.integer_at("minibatches_proven") + 8)
      << "what was reported is what the files prove";
}

TEST_F(TraceRehearsalProgram, LeavesNothingBehindWhenItIsStopped) {
  RunningProgram program(words({"--notice=30"}));
  const auto limit = std::chrono::steady_clock::now() + 60s;
  while (program.log().find("event=trace") == std::string::npos && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(20ms);
  }
  EXPECT_THAT(program.log(), HasSubstr("term=w1"));
  program.signal(SIGINT);
  const Ended ended = program.wait(20s);
  EXPECT_EQ(ended.exit_code, 75) << ended.log;
  EXPECT_EQ(ended.out, "");
  EXPECT_THAT(ended.log, HasSubstr("everstep: stopped by SIGINT"));
  EXPECT_THAT(processes_left(), testing::IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(path("run/job.conf")));
}

}  // namespace
}  // namespace everstep::launcher
