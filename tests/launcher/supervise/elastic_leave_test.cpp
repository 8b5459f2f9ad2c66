// Workers that are asked to leave: nothing is done twice.
#include <csignal>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/http/metadata_server.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

class ElasticLeave : public ElasticJob {
 protected:
  // The worker has gone, and the others went on with what it handed over.
  void expect_handed_over(RunningProgram& leaving, int workers, int before, int steps = 20) {
    EXPECT_TRUE(trains_with(workers, before));
    EXPECT_EQ(leaving.wait(seconds(30)).exit_code, 75);
    const std::vector<GenerationLine> all = generations();
    ASSERT_FALSE(all.empty());
    EXPECT_EQ(all.back().origin, "memory");
    EXPECT_EQ(all.back().redone, 0);
    EXPECT_TRUE(goes_on(steps));
    expect_stop();
    EXPECT_EQ(generation(), before + 1);
    expect_proofs();
  }
};

TEST_F(ElasticLeave, ByASignalHandsTheStateOver) {
  ASSERT_TRUE(starts(3, {"--workers=3", "--shapes=3=3x1,4=4x1"}));
  RunningProgram& leaving = add_worker("leaving");
  ASSERT_TRUE(trains_with(4));
  ASSERT_TRUE(goes_on());
  const int before = generation();
  leaving.signal(SIGTERM);
  expect_handed_over(leaving, 3, before);
  const std::string log = text_of("run/worker-leaving.log");
  EXPECT_THAT(log, HasSubstr("event=left reason=\"left as asked"));
  EXPECT_THAT(log, Not(HasSubstr("event=failed"))) << "nothing did";
}

// Its libraries are still being loaded.
TEST_F(ElasticLeave, OfAWorkerThatHasJustBeenStartedIsInOrder) {
  ASSERT_TRUE(starts(2, {"--workers=2", "--shapes=2=2x1,3=3x1"}));
  scale(3);
  ASSERT_TRUE(says("event=worker_started name=w2"));
  const auto children = train().children();
  ASSERT_FALSE(children.empty());
  send_signal(children.back(), SIGTERM);
  ASSERT_TRUE(says("event=worker_left name=w2"));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

// The terminal that it was started from may close.
TEST_F(ElasticLeave, IsNotAskedForByASignalThatWasIgnoredAtTheStart) {
  wrapper = {"/usr/bin/nohup"};
  ASSERT_TRUE(starts(2, {"--workers=2"}));
  const int before = generation();
  for (const pid_t process : {train().pid(), worker(0), worker(1)}) send_signal(process, SIGHUP);
  ASSERT_TRUE(goes_on(100));
  EXPECT_EQ(generation(), before);
  EXPECT_THAT(story(), Not(ContainsRegex("event=(stopping|leaving)")));
  expect_stop();
}

// It still runs when more are asked for: it does not count any more.
TEST_F(ElasticLeave, OfOneWhoWasDrainedIsNotCountedByScale) {
  ASSERT_TRUE(starts(4, {"--shapes=4=4x1,3=3x1"}));
  const int before = generation();
  const pid_t leaving = worker(1);
  send_signal(leaving, SIGSTOP);
  EXPECT_EQ(run_program({"drain", "w1", dir()}).exit_code, 0);
  scale(3);
  ASSERT_TRUE(says("event=scaling from=3 to=3"));
  send_signal(leaving, SIGCONT);
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(says("event=worker_left name=w1"));
  ASSERT_TRUE(goes_on());
  EXPECT_EQ(generations().back().workers, 3);
  expect_stop();
  expect_proofs();
}

TEST_F(ElasticLeave, OfAWorkerOfTheRunIsToldAsSuch) {
  ASSERT_TRUE(starts(4, {"--shapes=4=4x1,3=3x1"}));
  const pid_t leaving = worker(2);
  send_signal(leaving, SIGTERM);
  ASSERT_TRUE(says("event=worker_left name=w2"));
  EXPECT_TRUE(is_gone_within(leaving, seconds(5)));
  ASSERT_TRUE(goes_on());
  const Ended ended = expect_stop();
  EXPECT_EQ(generations().back().workers, 3);
  EXPECT_THAT(ended.out, HasSubstr(" 0 minibatches redone"));
  expect_proofs();
}

TEST_F(ElasticLeave, InAHurryStopsInsideTheWindow) {
  constexpr int kLongWindow = 120;  // takes 3 s at least, by the pace of workers: longer than there will be time
  pace = milliseconds(13);
  const std::string notice = path("notice");
  start({"--workers=3", "--shapes=3=3x1,4=4x1", "--window=" + std::to_string(kLongWindow), "--checkpoint-every=1"});
  RunningProgram& leaving = add_worker("leaving", {"--notice=file:" + notice});
  ASSERT_TRUE(trains_with(4));
  ASSERT_TRUE(goes_on(1));
  const int before = generation();
  std::ofstream(notice) << "2\n";
  expect_handed_over(leaving, 3, before, 1);
  EXPECT_NE(stretches().back().from % kLongWindow, 0);
}

TEST_F(ElasticLeave, ByANoticeInAFileHandsTheStateOver) {
  const std::string notice = path("notice");
  start({"--workers=3", "--shapes=3=3x1,4=2x2"});
  RunningProgram& leaving = add_worker("leaving", {"--notice=file:" + notice});
  ASSERT_TRUE(trains_with(4));
  ASSERT_TRUE(goes_on());
  const int before = generation();
  std::ofstream(notice) << "30\n";
  expect_handed_over(leaving, 3, before);
}

TEST_F(ElasticLeave, ByANoticeOfTheCloudHandsTheStateOver) {
  MetadataServer cloud;
  start({"--workers=2", "--shapes=2=2x1,3=1x3,4=2x2"});
  RunningProgram& on_aws = add_worker("on-aws", {"--notice=aws", "--notice-url=" + cloud.url()});
  RunningProgram& on_gcp = add_worker("on-gcp", {"--notice=gcp", "--notice-url=" + cloud.url()});
  ASSERT_TRUE(trains_with(4));
  ASSERT_TRUE(goes_on());
  int before = generation();
  cloud.set_preempted(true);
  ASSERT_TRUE(trains_with(3, before));
  EXPECT_EQ(on_gcp.wait(seconds(30)).exit_code, 75);
  before = generation();
  cloud.set_action(R"({"action": "terminate", "time": "2100-01-01T00:00:00Z"})");
  expect_handed_over(on_aws, 2, before);
}

TEST_F(ElasticLeave, OfEverybodySavesAndTheNextRunGoesOn) {
  ASSERT_TRUE(starts(4, {"--shapes=4=4x1,5=4x1"}));
  RunningProgram& spare = add_worker("spare");
  const auto stands_by = [&] {
    const auto log = read_file(path("run/worker-spare.log"), 1 << 20);
    return log && log->find("event=generation_obeyed") != std::string::npos;
  };
  ASSERT_TRUE(becomes("spare", stands_by));
  const Ended stopped = expect_stop();
  EXPECT_EQ(spare.wait(seconds(0)).exit_code, 75);
  EXPECT_THAT(stopped.log, HasSubstr("event=stopping signal=SIGINT"));
  expect_proofs();
  start({"--shapes=4=4x1,5=4x1", "--steps=" + std::to_string(step() + 50), "--resume"}, "second");
  const Ended ended = expect_end();
  EXPECT_THAT(ended.log, HasSubstr("event=resumed"));
  expect_proofs();
}

TEST_F(ElasticLeave, AtOnceIsWhatASecondSignalMeans) {
  start({"--window=1600"});
  ASSERT_TRUE(reaches(1));
  train().signal(SIGINT);
  ASSERT_TRUE(says("event=stopping"));
  train().signal(SIGINT);
  const Ended ended = train().wait(seconds(3));
  EXPECT_EQ(ended.exit_code, 75);
  expect_nobody_left();
}

}  // namespace
}  // namespace everstep::launcher
