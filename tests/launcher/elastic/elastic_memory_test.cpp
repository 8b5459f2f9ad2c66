// Losses that are made good from memory, and those that are too many for it.
#include <csignal>
#include <thread>

#include "storage/json/json.h"
#include "tests/launcher/elastic/elastic_job.h"

namespace everstep::launcher {
namespace {

constexpr int kWindow = 8;
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
    EXPECT_EQ(next.base, "copies");
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

TEST_F(ElasticMemory, MakesTheLossOfAWorkerGoodInAnAsynchronousPipeline) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--schedule=amdp", "--shapes=4=4x1,3=2x1"}));
  const int before = generation();
  ::kill(worker(2), SIGKILL);
  expect_recovery(2, before);
  expect_all_proofs();
}

TEST_F(ElasticMemory, MakesTheLossOfTheLeaderGoodWhereGroupsGuardEachOther) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--shapes=4=2x2,3=3x1,2=1x2"}));
  int before = generation();
  ::kill(worker(leader()), SIGKILL);
  expect_recovery(3, before);
  before = generation();
  ::kill(worker(leader()), SIGKILL);
  expect_recovery(2, before);
  expect_all_proofs();
}

TEST_F(ElasticMemory, MakesTwoLossesAtOnceGoodIfItWasAskedTo) {
  ASSERT_TRUE(starts_without_checkpoints(4, {"--redundancy=2", "--shapes=4=4x1,2=2x1"}));
  const int before = generation();
  const pid_t first = worker(1);
  ::kill(worker(2), SIGKILL);
  ::kill(first, SIGKILL);
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
  for (const pid_t process : processes) ::kill(process, SIGKILL);
  ASSERT_TRUE(trains_with(1, before));
  EXPECT_EQ(generations().back().base, "checkpoint");
  expect_all_proofs();
}

TEST_F(ElasticMemory, GoesBackToTheCheckpointIfItKeepsNoCopies) {
  ASSERT_TRUE(starts(3, {"--workers=3", "--redundancy=0", "--shapes=3=3x1,2=2x1", "--checkpoint-every=5"}));
  const int before = generation();
  ::kill(worker(2), SIGKILL);
  ASSERT_TRUE(trains_with(2, before));
  EXPECT_EQ(generations().back().base, "checkpoint");
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
    ::kill(worker(left), SIGKILL);
    expect_recovery(left, before);
  }
  expect_all_proofs();
}

}  // namespace
}  // namespace everstep::launcher
