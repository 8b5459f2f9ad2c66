// Whole rehearsals, with real processes: that all promises hold, and that a broken one is seen.
#include <csignal>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include <gmock/gmock.h>

#include "launcher/cli/process_table.h"
#include "launcher/rehearse/chaos/schedule.h"
#include "tests/launcher/commands/command_run.h"
#include "tests/launcher/program.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kPatience{100};

class Chaos : public CommandFiles {
 protected:
  Ended run(std::vector<std::string> args) const {
    args.insert(args.begin(), {"chaos", "--output=" + path("out")});
    Ended ended = RunningProgram(args, paced()).wait(kPatience);
    EXPECT_EQ(processes_naming(path("out")), std::vector<pid_t>());
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
constexpr std::uint64_t kEtcdSplit = 2356;
constexpr std::uint64_t kCutFromEtcd = 2366;
constexpr std::uint64_t kCutOff = 1015;
constexpr std::uint64_t kThinLine = 1161;
constexpr std::uint64_t kCutFromPeers = 2201;
constexpr std::uint64_t kHalfOpen = 65;

TEST_F(Chaos, PromisesHoldWhenEtcdIsSplitAndAWorkerCrashes) { expect_all_hold(kEtcdSplit); }
TEST_F(Chaos, PromisesHoldWhenAHostIsCutFromEtcdAndTheDiskIsFull) { expect_all_hold(kCutFromEtcd); }
TEST_F(Chaos, PromisesHoldWhenAHostIsCutOffAndAllAreKilled) { expect_all_hold(kCutOff); }
TEST_F(Chaos, PromisesHoldWhenALineIsThinAndEtcdIsRestarted) { expect_all_hold(kThinLine); }
TEST_F(Chaos, PromisesHoldWhenAHostIsCutFromPeers) { expect_all_hold(kCutFromPeers); }
TEST_F(Chaos, PromisesHoldWhenAPeerIsHalfOpenAndBytesAreWrong) { expect_all_hold(kHalfOpen); }

// Beside the first generation there is only that of the one who joins, if it comes in time.
TEST_F(Chaos, NobodyIsEvictedByASplitOfEtcdOrAThinLine) {
  const Ended ended = run({"--schedule=" + file("schedule.txt",
                                                "workers 2\netcd-servers 3\nkind clockwork\nshape deep\n"
                                                "0.1 etcd-split for=3.5\n4 thin-line for=6\n")});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  for (const char* happened : {"etcd-split: etcd-2 is back", "thin-line: begins for joined-0", "thin-line: is over"}) {
    EXPECT_NE(ended.out.find(happened), std::string::npos) << ended.out;
  }
  EXPECT_THAT(ended.out, testing::ContainsRegex(" in [12] generations?, none after"));
}

// At most the first, that of the one who joins (unless it is cut before), that without it, and the one with it again.
// It comes back through etcd at once, and must not be planned for while nobody reaches it.
TEST_F(Chaos, AWorkerThatIsCutFromItsPeersCostsFewGenerations) {
  const Ended ended = run({"--schedule=" + file("schedule.txt",
                                                "workers 3\netcd-servers 1\nkind synchronous\nshape deep\n"
                                                "0.1 cut-peers for=10\n")});
  EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
  EXPECT_NE(ended.out.find("cut-peers: is over"), std::string::npos) << ended.out;
  EXPECT_THAT(ended.out, testing::ContainsRegex(" in [2-4] generations, none after"));
}

TEST_F(Chaos, FaultsBetweenWorkersAreOnTheWayThatTheyTake) {
  for (const std::string fault : {"corrupt", "delay"}) {
    const std::string schedule = "seed 5\nworkers 2\nkind clockwork\nshape deep\n0.1 " + fault + " for=5\n";
    const Ended ended = run({"--keep", "--schedule=" + file("schedule.txt", schedule)});
    EXPECT_EQ(ended.exit_code, 0) << ended.out << ended.log;
    for (const char* log : {"out/seed-5/joined-0.log", "out/seed-5/run/worker-0.log"}) {
      EXPECT_THAT(text_of(log), testing::ContainsRegex("peers_over_unix=0 peers_over_tls=[1-9]"));
      EXPECT_THAT(text_of(log), testing::Not(testing::ContainsRegex("peers_over_unix=[1-9]")));
    }
    std::filesystem::remove_all(path("out"));
  }
}

TEST(ChaosSeeds, OfTheseTestsDrawEveryFault) {
  std::set<chaos::FaultKind> drawn;
  for (const std::uint64_t seed : {kEtcdSplit, kCutFromEtcd, kCutOff, kThinLine, kCutFromPeers, kHalfOpen}) {
    chaos::ScheduleOptions options;
    options.can_fill_disk = true;
    options.can_slow_disk = true;
    options.can_cut_network = true;
    options.can_limit_memory = true;
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
  EXPECT_EQ(processes_naming(path("out")), std::vector<pid_t>());
}

TEST_F(Chaos, LeavesNoProcessBehindWhenItIsKilled) {
  RunningProgram program(long_rehearsal());
  ASSERT_TRUE(has_joined());
  program.signal(SIGKILL);
  program.wait(seconds(10));
  EXPECT_TRUE(becomes([&] { return processes_naming(path("out")).empty(); }, seconds(5)));
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
