// Whole rehearsals, with real processes: that all promises hold, and that a broken one is seen.
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <thread>

#include "base/text.h"
#include "launcher/chaos/schedule.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{100};

// Those whose command line names something in the directory.
std::vector<std::string> processes_of(const std::string& directory) {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!parse_number<pid_t>(entry.path().filename().string())) continue;
    std::ifstream file(entry.path() / "cmdline");
    std::stringstream text;
    text << file.rdbuf();
    if (text.str().find(directory) != std::string::npos) found.push_back(text.str());
  }
  return found;
}

class Chaos : public CommandFiles {
 protected:
  Ended run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"chaos", "--output=" + path("out")});
    Ended ended = RunningProgram(args).wait(kPatience);
    EXPECT_EQ(processes_of(path("out")), std::vector<std::string>());
    return ended;
  }

  void expect_all_hold(std::uint64_t seed) const {
    const Ended ended = run({"--seed=" + std::to_string(seed)});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
    for (const char* promise : {"LIVE ", "NOHANG ", "FENCE ", "ONCE ", "CHAIN ", "RESTORE ", "BITS ", "BOUND "}) {
      EXPECT_NE(ended.out.find(promise), std::string::npos) << promise << "\n" << ended.out;
    }
    EXPECT_FALSE(std::filesystem::exists(path("out/seed-" + std::to_string(seed))));
  }

  // One that goes on until somebody ends it.
  std::vector<std::string> long_rehearsal() const {
    return {"chaos", "--output=" + path("out"),
            "--schedule=" + file("schedule.txt", "workers 2\n0 join count=1\n60 kill-leader\n")};
  }

  static bool becomes(const std::function<bool()>& condition, seconds limit) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(milliseconds(50));
    }
    return true;
  }

  // All kinds of processes run then.
  bool has_joined() const {
    return becomes([&] { return std::filesystem::exists(path("out/seed-0/joined-0.log")); }, kPatience);
  }

  Ended expect_broken(const std::string& promise, const std::string& schedule) const {
    Ended ended = run({"--schedule=" + file("schedule.txt", schedule)});
    EXPECT_EQ(ended.exit_code, 70) << ended.out << ended.log;
    EXPECT_NE(ended.log.find("promises are broken: seed 5 (" + promise), std::string::npos) << ended.log;
    EXPECT_NE(ended.out.find(path("out/seed-5/schedule.txt")), std::string::npos) << ended.out;
    EXPECT_TRUE(std::filesystem::exists(path("out/seed-5/train.log")));
    return ended;
  }
};

// Between them these seeds draw every fault, where the machine can make them all.
constexpr std::uint64_t kAllKilled = 2814;
constexpr std::uint64_t kCutOff = 1901;
constexpr std::uint64_t kCutFromEtcd = 1866;
constexpr std::uint64_t kCutFromPeers = 2578;
constexpr std::uint64_t kHalfOpen = 17;

TEST_F(Chaos, PromisesHoldWhenAllAreKilledAndBytesAreWrong) { expect_all_hold(kAllKilled); }
TEST_F(Chaos, PromisesHoldWhenAHostIsCutOffAndTheDiskIsFull) { expect_all_hold(kCutOff); }
TEST_F(Chaos, PromisesHoldWhenAHostIsCutFromEtcd) { expect_all_hold(kCutFromEtcd); }
TEST_F(Chaos, PromisesHoldWhenAHostIsCutFromPeers) { expect_all_hold(kCutFromPeers); }
TEST_F(Chaos, PromisesHoldWhenAPeerIsHalfOpenAndEtcdIsRestarted) { expect_all_hold(kHalfOpen); }

TEST(ChaosSeeds, OfTheseTestsDrawEveryFault) {
  std::set<chaos::FaultKind> drawn;
  for (const std::uint64_t seed : {kAllKilled, kCutOff, kCutFromEtcd, kCutFromPeers, kHalfOpen}) {
    chaos::ScheduleOptions options;
    options.can_fill_disk = true;
    options.can_slow_disk = true;
    options.can_cut_network = true;
    for (const auto& one : make_schedule(seed, options).faults) drawn.insert(one.fault.kind);
  }
  for (const chaos::FaultForm& form : chaos::all_forms()) {
    EXPECT_EQ(drawn.contains(form.kind), form.needs != chaos::Needs::kNobody) << form.name;
  }
}

TEST_F(Chaos, SeesAByteThatChanged) {
  const Ended ended = expect_broken("RESTORE, BITS", "seed 5\nworkers 2\n0.1 flip-byte\n");
  EXPECT_NE(ended.out.find("CHAIN   holds"), std::string::npos) << ended.out;
}

TEST_F(Chaos, SeesAWorkerThatHangs) {
  const Ended ended = expect_broken("NOHANG", "seed 5\nworkers 2\n0.1 join count=1\n3 hang\n");
  EXPECT_NE(ended.out.find("worker joined-0 still runs"), std::string::npos) << ended.out;
}

TEST_F(Chaos, SeesAProcessThatIsLeft) {
  const Ended ended = expect_broken("NOHANG)", "seed 5\nworkers 2\n0.1 stray\n");
  EXPECT_NE(ended.out.find("is left: 600"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("BITS    holds"), std::string::npos) << ended.out;
}

TEST_F(Chaos, LeavesNothingBehindWhenItIsInterrupted) {
  RunningProgram program(long_rehearsal());
  ASSERT_TRUE(has_joined());
  program.signal(SIGINT);
  const Ended ended = program.wait(seconds(10));
  EXPECT_EQ(ended.exit_code, 75) << ended.log;
  EXPECT_EQ(processes_of(path("out")), std::vector<std::string>());
}

TEST_F(Chaos, LeavesNoProcessBehindWhenItIsKilled) {
  RunningProgram program(long_rehearsal());
  ASSERT_TRUE(has_joined());
  program.signal(SIGKILL);
  program.wait(seconds(10));
  EXPECT_TRUE(becomes([&] { return processes_of(path("out")).empty(); }, seconds(5)));
}

TEST_F(Chaos, RunsWhatItPrints) {
  const Ended printed = run({"--seed=12", "--print"});
  EXPECT_EQ(printed.exit_code, 0) << printed.log;
  const Ended again = run({"--schedule=" + file("schedule.txt", printed.out), "--print"});
  EXPECT_EQ(again.out, printed.out);
  EXPECT_FALSE(std::filesystem::exists(path("out")));
}

TEST_F(Chaos, RefusesAScheduleThatMakesNoSense) {
  const Ended ended = run({"--schedule=" + file("schedule.txt", "workers 4\n1 kill-king\n")});
  EXPECT_EQ(ended.exit_code, 64) << ended.log;
  EXPECT_NE(ended.log.find("line 2: 'kill-king': there is no such fault"), std::string::npos) << ended.log;
}

TEST_F(Chaos, RefusesADirectoryThatIsInUse) {
  std::filesystem::create_directories(path("out/seed-0"));
  const Ended ended = run({});
  EXPECT_EQ(ended.exit_code, 64) << ended.log;
  EXPECT_NE(ended.log.find("name another one with --output"), std::string::npos) << ended.log;
}

}  // namespace
}  // namespace everstep::launcher
