// Losses that are made good from memory, and those that are too many for it.
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "storage/json/json.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

constexpr int kAhead = 4;  // minibatches of the next window that an asynchronous pipeline has begun

class ElasticMemory : public ElasticJob {
 protected:
  // So few checkpoints that going back to one would show.
  testing::AssertionResult starts_without_checkpoints(int workers, Words more) {
    more.insert(more.end(), {"--workers=" + std::to_string(workers), "--checkpoint-every=10000"});
    start(more);
    if (auto all = trains_with(workers); !all) return all;
    return goes_on();
  }

  // The next generation, which so many work in.
  void expect_recovery(int workers, int after) {
    ASSERT_TRUE(trains_with(workers, after));
    const GenerationLine next = generations().back();
    EXPECT_TRUE(next.origin == "copies" || next.origin == "sums") << next.origin;
    EXPECT_LE(next.redone, 2 * kWindow + kAhead);
    EXPECT_TRUE(goes_on());
  }

  // The numbers of the workers that the job could not lose at once, by its own word.
  std::vector<int> too_many() const {
    std::vector<int> numbers;
    const auto status = storage::parse_json(run_command({"status", "--dir=" + path("run"), "--json"}).out);
    const storage::Json* survives = status ? status->find("survives") : nullptr;
    const storage::Json* names = survives != nullptr ? survives->find("too_many") : nullptr;
    if (names == nullptr) return numbers;
    for (const storage::Json& name : std::get<storage::Json::Array>(names->value())) {
      numbers.push_back(std::stoi(std::get<std::string>(name.value()).substr(1)));
    }
    return numbers;
  }

  void expect_all_proofs() {
    expect_stop();
    expect_proofs();
  }
};

// A bit of the weights of one replica that is not their owner, written into the memory of the real process.
class ElasticFlip : public ElasticJob {
 protected:
  // Three replicas of the whole model.
  void flip_a_bit(const Words& more) {
    Words words{"--workers=3", "--synchronous", "--shapes=3=1x3,2=1x2"};
    words.insert(words.end(), more.begin(), more.end());
    environment = {"TEST_WEIGHTS_TOLD_IN=" + path("")};
    ASSERT_TRUE(starts(3, words));
    const pid_t process = worker(replica());
    std::istringstream told(text_of(std::to_string(process)));
    off_t address = 0;
    off_t bytes = 0;
    ASSERT_TRUE(told >> address >> bytes);
    // The sign of a weight in the middle, which every minibatch uses. All numbers stay finite, whatever the data is.
    const off_t at = address + bytes / 8 * 4 + 3;
    send_signal(process, SIGSTOP);
    std::fstream memory("/proc/" + std::to_string(process) + "/mem", std::ios::binary | std::ios::in | std::ios::out);
    constexpr int kBit = 0x80;
    memory.seekg(at);
    const int byte = memory.get();
    memory.seekp(at);
    memory.put(static_cast<char>(byte ^ kBit)).flush();
    EXPECT_TRUE(memory.good());
    send_signal(process, SIGCONT);
  }

  // The number of a worker that is not in the first group: the first owns what all have.
  int replica() const {
    const auto status = storage::parse_json(run_program({"status", dir(), "--json"}).out);
    const storage::Json* workers = status ? status->find("workers") : nullptr;
    EXPECT_NE(workers, nullptr);
    if (workers == nullptr) return 0;
    for (const storage::Json& one : std::get<storage::Json::Array>(workers->value())) {
      if (*one.find("group") == storage::Json(1))
        return std::stoi(std::get<std::string>(one.find("name")->value()).substr(1));
    }
    ADD_FAILURE() << "no worker in the second group";
    return 0;
  }
};

TEST_F(ElasticFlip, IsFoundBeforeItReachesACheckpointWhenEveryWindowIsCompared) {
  flip_a_bit({"--compare-replicas=1"});
  ASSERT_TRUE(says("in the memory of worker"));
  ASSERT_TRUE(trains_with(2, 1));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

// Which shows that the bit does harm, and that the proofs see it.
TEST_F(ElasticFlip, ReachesACheckpointWhenNothingIsCompared) {
  flip_a_bit({"--compare-replicas=0"});
  ASSERT_TRUE(saves(step() + 20));
  expect_stop();
  EXPECT_EQ(run_program({"audit", path("saves")}).exit_code, 0);
  EXPECT_NE(run_program({"replay", path("saves")}).exit_code, 0);
}

TEST_F(ElasticMemory, MakesTheLossOfAWorkerGoodInAnAsynchronousPipeline) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--schedule=clockwork", "--shapes=4=4x1,3=3x1"}));
  const int before = generation();
  send_signal(worker(2), SIGKILL);
  expect_recovery(3, before);
  expect_all_proofs();
}

// Found by chaos: it has copies too, but could not say so when it was asked. It keeps its lease all the time.
TEST_F(ElasticMemory, DoesNotCountOnOneThatWasAsleepWhenItWasAsked) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--redundancy=2", "--shapes=4=4x1,3=3x1", "--lease-ttl=30"}));
  const int before = generation();
  const int leads = leader();
  const pid_t sleeper = worker((leads + 1) % 4);
  send_signal(sleeper, SIGSTOP);
  send_signal(worker((leads + 2) % 4), SIGKILL);
  ASSERT_TRUE(says("event=generation_obeyed generation=" + std::to_string(before + 1)));
  send_signal(sleeper, SIGCONT);
  ASSERT_TRUE(trains_with(3, before));
  EXPECT_EQ(generations().back().origin, "copies");
  EXPECT_TRUE(goes_on());
  EXPECT_FALSE(is_gone_within(sleeper, std::chrono::milliseconds(0)));
  expect_all_proofs();
}

TEST_F(ElasticMemory, MakesTheLossOfTheLeaderGoodWhereGroupsGuardEachOther) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--shapes=4=2x2,3=3x1,2=1x2"}));
  int before = generation();
  send_signal(worker(leader()), SIGKILL);
  expect_recovery(3, before);
  before = generation();
  send_signal(worker(leader()), SIGKILL);
  expect_recovery(2, before);
  expect_all_proofs();
}

// A group that lost nobody stops by itself and keeps its sums: of a long window, in the middle of which most kills
// fall, only what the other groups ran is run again.
TEST_F(ElasticMemory, DoesNotRedoWhatAGroupWithoutALossHasRun) {
  constexpr int kLongWindow = 64;
  start({"--workers=6", "--checkpoint-every=5000", "--window=" + std::to_string(kLongWindow),
         "--shapes=6=2x3,5=1x5,4=2x2,3=3x1"});
  ASSERT_TRUE(trains_with(6));
  int kept = 0;
  for (const int left : {5, 4, 3}) {
    ASSERT_TRUE(goes_on(2));
    const int before = generation();
    send_signal(worker(left), SIGKILL);
    ASSERT_TRUE(trains_with(left, before));
    const GenerationLine next = generations().back();
    if (next.origin != "sums") continue;
    ++kept;
    EXPECT_LT(next.redone, kLongWindow) << "of a window, not all of which was run";
  }
  EXPECT_GT(kept, 0);
  ASSERT_TRUE(goes_on(2));
  expect_all_proofs();
}

TEST_F(ElasticMemory, MakesTwoLossesAtOnceGoodIfItWasAskedTo) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--redundancy=2", "--shapes=4=4x1,2=2x1"}));
  const int before = generation();
  const pid_t first = worker(1);
  send_signal(worker(2), SIGKILL);
  send_signal(first, SIGKILL);
  expect_recovery(2, before);
  expect_all_proofs();
}

// Status says whose loss that would be.
TEST_F(ElasticMemory, GoesBackToTheCheckpointWhenTooMuchIsLostAtOnce) {
  ASSERT_TRUE(starts(3, {"--workers=3", "--shapes=3=3x1,1=1x1", "--checkpoint-every=5"}));
  const int before = generation();
  const std::vector<int> lost = too_many();
  ASSERT_EQ(lost.size(), 2U) << "an owner and its guard";
  const std::vector<pid_t> processes{worker(lost[0]), worker(lost[1])};
  for (const pid_t process : processes) send_signal(process, SIGKILL);
  ASSERT_TRUE(trains_with(1, before));
  EXPECT_EQ(generations().back().origin, "checkpoint");
  expect_all_proofs();
}

TEST_F(ElasticMemory, GoesBackToTheCheckpointIfItKeepsNoCopies) {
  ASSERT_TRUE(starts(3, {"--workers=3", "--redundancy=0", "--shapes=3=3x1,2=2x1", "--checkpoint-every=5"}));
  const int before = generation();
  send_signal(worker(2), SIGKILL);
  ASSERT_TRUE(trains_with(2, before));
  EXPECT_EQ(generations().back().origin, "checkpoint");
  expect_all_proofs();
}

// It has parts of the state that nobody else has any more, but for those who handed them over.
TEST_F(ElasticMemory, MakesTheLossOfANewcomerGoodThatHasJustTakenOver) {
  ASSERT_TRUE(starts_without_checkpoints(2, {"--shapes=2=2x1,3=3x1"}));
  const int before = generation();
  RunningProgram& newcomer = add_worker("newcomer");
  ASSERT_TRUE(trains_with(3, before));
  newcomer.signal(SIGKILL);
  expect_recovery(2, before + 1);
  expect_all_proofs();
}

TEST_F(ElasticMemory, MakesOneLossAfterTheOtherGood) {
  ASSERT_TRUE(starts_without_checkpoints(5, {"--shapes=5=5x1,4=4x1,3=3x1,2=2x1"}));
  for (int left = 4; left >= 2; --left) {
    const int before = generation();
    send_signal(worker(left), SIGKILL);
    expect_recovery(left, before);
  }
  expect_all_proofs();
}

}  // namespace
}  // namespace everstep::launcher
