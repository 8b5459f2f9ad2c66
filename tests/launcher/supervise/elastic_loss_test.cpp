// Workers that die, hang or all go at once.
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ElasticLoss : public ElasticJob {
 protected:
  // Three of five die, from the one so many places behind the leader on. None of them sees another die.
  void expect_one_generation_for_most(int behind_leader) {
    ASSERT_TRUE(starts(5, {"--workers=5", "--shapes=5=5x1,4=4x1,3=3x1,2=2x1,1=1x1"}));
    const int before = generation();
    const int first = leader() + behind_leader;
    const std::vector<pid_t> most{worker(first % 5), worker((first + 1) % 5), worker((first + 2) % 5)};
    for (const int number : {SIGSTOP, SIGKILL}) {
      for (const pid_t one : most) send_signal(one, number);
    }
    ASSERT_TRUE(trains_with(2, before));
    ASSERT_TRUE(goes_on());
    expect_stop();
    EXPECT_EQ(generation(), before + 1);
    expect_proofs();
  }
};

TEST_F(ElasticLoss, OfAWorkerCostsWhatCameAfterHeadWithoutCopies) {
  ASSERT_TRUE(starts(4, {"--redundancy=0", "--shapes=4=4x1,3=3x1"}));
  const int before = generation();
  send_signal(worker(2), SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  EXPECT_EQ(generations().back().origin, "checkpoint");
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

TEST_F(ElasticLoss, OfTheLeaderIsLikeThatOfAnyOther) {
  ASSERT_TRUE(starts(4, {"--shapes=4=2x2,3=3x1", "--lease-ttl=30"}));
  const int before = generation();
  const pid_t leads = worker(leader());
  const auto killed = std::chrono::steady_clock::now();
  send_signal(leads, SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  EXPECT_LT(std::chrono::steady_clock::now() - killed, seconds(10)) << "another leads long before a lease has run out";
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

// Its log says where it was, and `everstep train` repeats it.
TEST_F(ElasticLoss, OfAWorkerThatCrashesIsReportedWithGenerationAndStep) {
  ASSERT_TRUE(starts(4, {"--shapes=4=2x2,3=3x1"}));
  const int before = generation();
  send_signal(worker(2), SIGSEGV);
  ASSERT_TRUE(trains_with(3, before));
  const std::string where = "generation " + std::to_string(before) + " at step ";
  EXPECT_TRUE(says("event=worker_died name=w2 signal=SIGSEGV in=\"" + where));
  EXPECT_NE(story().find("event=crashed signal=SIGSEGV worker=w2 pid="), std::string::npos);
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

// It wakes up with a lease that has run out: not the member any more that it was.
TEST_F(ElasticLoss, OfAWorkerThatHangsEndsWhenItComesBackAsANewOne) {
  ASSERT_TRUE(starts(4, {"--lease-ttl=2", "--shapes=4=2x2,3=3x1"}));
  const pid_t sleeper = worker(1);
  const int before = generation();
  send_signal(sleeper, SIGSTOP);
  ASSERT_TRUE(trains_with(3, before));
  const int without = generation();
  send_signal(sleeper, SIGCONT);
  ASSERT_TRUE(trains_with(4, without));
  ASSERT_FALSE(is_gone_within(sleeper, milliseconds(0)));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

TEST_F(ElasticLoss, OfASecondWorkerDuringRecoveryIsRecoveredFromToo) {
  ASSERT_TRUE(starts(5, {"--workers=5", "--shapes=5=5x1,4=4x1,3=3x1,2=2x1,1=1x1"}));
  int before = generation();
  send_signal(worker(2), SIGKILL);
  std::this_thread::sleep_for(milliseconds(80));
  send_signal(worker(3), SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(goes_on());
  before = generation();
  const pid_t third = worker(1);
  send_signal(worker(0), SIGKILL);
  // As soon as the next generation is open, before it has made a step.
  ASSERT_TRUE(says("event=generation_obeyed generation=" + std::to_string(before + 1)));
  send_signal(third, SIGKILL);
  ASSERT_TRUE(trains_with(1, before));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

TEST_F(ElasticLoss, OfMostWorkersAtOnceCostsOneGeneration) { expect_one_generation_for_most(1); }
TEST_F(ElasticLoss, OfMostWorkersAndTheLeaderAtOnceCostsOneGeneration) { expect_one_generation_for_most(0); }

TEST_F(ElasticLoss, OfEverythingIsMadeGoodByTheNextRun) {
  ASSERT_TRUE(starts(4, {"--shapes=4=2x2"}));
  train().signal(SIGKILL);
  train().wait(seconds(0));
  expect_nobody_left();
  start({"--resume", "--workers=3", "--shapes=3=3x1", "--steps=" + std::to_string(step() + 50)}, "second");
  expect_end();
  expect_proofs();
}

TEST_F(ElasticLoss, OfAllWorkersIsMadeGoodByOthersWhileEtcdLives) {
  const elastic::EtcdCluster cluster;
  ASSERT_TRUE(
      starts(3, {"--workers=3", "--etcd=" + cluster.endpoint(0), "--job=job", "--shapes=3=3x1,2=2x1", "--steps=500"}));
  for (const pid_t worker : {worker(0), worker(1), worker(2)}) send_signal(worker, SIGKILL);
  expect_end(69);
  RunningProgram& first = add_worker("first");
  RunningProgram& second = add_worker("second");
  EXPECT_EQ(first.wait(seconds(60)).exit_code, 0);
  EXPECT_EQ(second.wait(seconds(60)).exit_code, 0);
  expect_nobody_left();
  expect_proofs();
}

// They need the etcd of the run.
TEST_F(ElasticLoss, OfAllWorkersOfTheRunLeavesTheJobToOthers) {
  ASSERT_TRUE(starts(1, {"--workers=1", "--shapes=1=1x1,2=2x1"}));
  RunningProgram& other = add_worker("other");
  ASSERT_TRUE(trains_with(2));
  send_signal(worker(0), SIGKILL);
  ASSERT_TRUE(says("event=serving_others"));
  expect_stop();
  EXPECT_EQ(other.wait(seconds(0)).exit_code, 75);
  expect_proofs();
}

TEST_F(ElasticLoss, OfTooManyMakesTheJobWaitForOthers) {
  ASSERT_TRUE(starts(3, {"--workers=3", "--min-workers=3", "--shapes=3=3x1"}));
  const int before = generation();
  send_signal(worker(0), SIGKILL);
  ASSERT_TRUE(says("event=waiting workers=2 wanted=3"));
  RunningProgram& another = add_worker("another");
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(goes_on());
  expect_stop();
  EXPECT_EQ(another.wait(seconds(0)).exit_code, 75);
  expect_proofs();
}

// The job tells so, and takes another one in when the time is over.
TEST_F(ElasticLoss, OfThreeWorkersShutsTheirHostOutForAWhile) {
  ASSERT_TRUE(starts(4, {"--shapes=4=4x1,3=3x1,2=2x1,1=1x1"}));
  const int leads = leader();
  for (const int number : {0, 1, 2, 3}) {
    if (number != leads) send_signal(worker(number), SIGKILL);
  }
  ASSERT_TRUE(says("event=host_shut_out host="));
  EXPECT_TRUE(says(" seconds=1 times=1"));
  const Ended status = run_program({"status", dir()});
  EXPECT_NE(status.out.find("shut out"), std::string::npos) << status.out;
  const int before = generation();
  scale(2);
  ASSERT_TRUE(trains_with(2, before));
  expect_stop();
  expect_proofs();
}

// All processes of the job see their wall clock jump by an hour, forward and back; etcd's does not.
TEST_F(ElasticLoss, IsNotWhatAWallClockThatJumpsMakes) {
  environment = {std::string("LD_PRELOAD=") + EVERSTEP_JUMPING_CLOCK, "JUMPING_CLOCK=" + path("an-hour-ahead")};
  const elastic::EtcdCluster cluster;
  ASSERT_TRUE(starts(4, {"--etcd=" + cluster.endpoint(0), "--job=job", "--shapes=4=4x1", "--lease-ttl=2"}));
  const int before = generation();
  file("an-hour-ahead", "");
  std::this_thread::sleep_for(milliseconds(3000));
  ASSERT_TRUE(saves(step() + 1));
  std::filesystem::remove(path("an-hour-ahead"));
  std::this_thread::sleep_for(milliseconds(3000));
  ASSERT_TRUE(saves(step() + 1));
  expect_stop();
  EXPECT_EQ(generation(), before);
  expect_proofs();
}

// A spot machine that goes sooner than it said.
TEST_F(ElasticLoss, OfAWorkerThatWasAboutToLeaveIsALoss) {
  ASSERT_TRUE(starts(4, {"--shapes=4=4x1,3=3x1"}));
  const pid_t leaving = worker(3);
  const int before = generation();
  send_signal(leaving, SIGTERM);
  std::this_thread::sleep_for(milliseconds(20));
  send_signal(leaving, SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
