// One curve per job, and no number that hides.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "storage/json/json_reader.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

class ElasticCurve : public ElasticJob {
 protected:
  // Beside the checkpoints, by the link in the run's directory.
  void expect_each_step_once(int steps) const {
    std::ifstream lines(path("run/curve.jsonl"));
    int next = 1;
    for (std::string line; std::getline(lines, line); ++next) {
      const auto json = storage::parse_json(line);
      ASSERT_TRUE(json) << line;
      ASSERT_EQ(*storage::JsonReader(*json).integer_at("step"), next) << line;
    }
    EXPECT_EQ(next - 1, steps);
  }
};

// Found by users: 185 steps of a job that others trained on were in no file.
TEST_F(ElasticCurve, HasNoHoleAfterTheSupervisorWasKilledAndAnotherTrainsOn) {
  const elastic::EtcdCluster cluster;
  ASSERT_TRUE(starts(2, {"--workers=2", "--etcd=" + cluster.endpoint(0), "--job=job", "--shapes=3=3x1,2=2x1,1=1x1"}));
  RunningProgram& other = add_worker("other");
  ASSERT_TRUE(trains_with(3));
  ASSERT_TRUE(goes_on());
  train().signal(SIGKILL);
  train().wait(seconds(0));
  const Ended stopped = run_program({"stop", "--etcd=" + cluster.endpoint(0), "--job=job"});
  EXPECT_EQ(stopped.exit_code, 0) << stopped.log;
  EXPECT_EQ(other.wait(seconds(60)).exit_code, 75);
  const std::vector<Stretch> all = stretches();
  ASSERT_FALSE(all.empty());
  expect_each_step_once(all.back().to / kWindow);
  expect_proofs();
}

TEST_F(ElasticCurve, HasNoHoleAfterTheLeaderWasKilled) {
  ASSERT_TRUE(starts(4, {"--shapes=4=2x2,3=3x1,2=2x1", "--checkpoint-every=3"}));
  for (const int workers : {3, 2}) {
    const int before = generation();
    send_signal(worker(leader()), SIGKILL);
    ASSERT_TRUE(trains_with(workers, before));
    ASSERT_TRUE(goes_on());
  }
  expect_stop();
  expect_each_step_once(step());
  expect_proofs();
}

TEST_F(ElasticCurve, GoesOnWhereTheNextRunDoes) {
  ASSERT_TRUE(starts(2, {"--workers=2", "--shapes=2=2x1"}));
  train().signal(SIGKILL);
  train().wait(seconds(0));
  expect_nobody_left();
  const int steps = step() + 30;
  start({"--resume", "--workers=2", "--shapes=2=2x1", "--steps=" + std::to_string(steps)}, "second");
  expect_end();
  expect_each_step_once(steps);
}

// A rate at which weight decay alone makes the weights grow until nothing is finite.
class ElasticSkips : public ElasticJob {
 protected:
  const Words ruinous_{"--workers=2", "--shapes=2=2x1", "--lr=1000",   "--min-lr=1000",
                       "--warmup=0",  "--clip=0",       "--steps=2000"};
};

// Found by users: 399 of 400 updates were skipped, and the run was said to have ended well.
TEST_F(ElasticSkips, AreToldAtOnceAndEndTheJobWhenTheyAreTooManyInARow) {
  Words words = ruinous_;
  words.emplace_back("--max-skipped-updates=7");
  start(words);
  const Ended ended = expect_end(78);
  EXPECT_THAT(ended.log, AllOf(HasSubstr("event=update_skipped step="), HasSubstr("in_a_row=7 in_all=")));
  EXPECT_THAT(ended.log, HasSubstr("7 updates in a row were skipped"));
  EXPECT_THAT(ended.log, HasSubstr("--max-skipped-updates"));
  EXPECT_THAT(story(), HasSubstr("event=update_skipped"));
  const Ended listed = run_program({"checkpoint", "ls", "--checkpoint-dir=" + path("saves")});
  EXPECT_EQ(listed.exit_code, 0) << listed.log;
}

TEST_F(ElasticSkips, AreCountedInStatusMetricsAndSummary) {
  Words words = ruinous_;
  words.emplace_back("--max-skipped-updates=0");
  start(words);
  ASSERT_TRUE(says("in_a_row=30 "));
  std::string status;
  ASSERT_TRUE(becomes("status that counts them", [&] {
    status = run_program({"status", dir()}).out;
    return status.find("skipped so far") != std::string::npos;
  })) << status;
  EXPECT_THAT(status, AllOf(HasSubstr("learning rate 1000"), HasSubstr("gradient norm"), HasSubstr(" left\n")));
  const Ended ended = expect_stop();
  EXPECT_THAT(ended.out, HasSubstr(" skipped (gradient not finite or too large)"));
  EXPECT_THAT(text_of("run/metrics.jsonl"), AllOf(HasSubstr("\"skipped_in_all\":30,"), HasSubstr("\"steps\":2000")));
  EXPECT_THAT(text_of("run/curve.jsonl"), HasSubstr("\"skipped\":true"));
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
