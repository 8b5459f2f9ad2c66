// Workers that join, and many changes in a row.
#include <algorithm>
#include <csignal>

#include <gmock/gmock.h>

#include "tests/launcher/supervise/elastic_job.h"
#include "tests/send_signal.h"

namespace everstep::launcher {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class ElasticChange : public ElasticJob {};

TEST_F(ElasticChange, OfOneThatJoinsRedoesNothing) {
  ASSERT_TRUE(starts(3, {"--workers=3", "--shapes=3=3x1,4=4x1"}));
  RunningProgram& joining = add_worker("joining");
  ASSERT_TRUE(trains_with(4));
  EXPECT_EQ(generations().back().origin, "memory");
  EXPECT_EQ(generations().back().redone, 0);
  ASSERT_TRUE(goes_on());
  expect_stop();
  EXPECT_EQ(joining.wait(seconds(0)).exit_code, 75);
  expect_proofs();
}

TEST_F(ElasticChange, OfTwoThatJoinAndOneThatLeavesRedoesNothing) {
  ASSERT_TRUE(starts(4, {"--workers=4", "--shapes=4=4x1,3=3x1,5=5x1,6=3x2"}));
  const pid_t leaving = worker(1);
  const int before = generation();
  scale(6);
  ASSERT_GT(worker(5), 0);
  send_signal(leaving, SIGTERM);
  ASSERT_TRUE(trains_with(5, before));
  ASSERT_TRUE(goes_on());
  const Ended ended = expect_stop();
  EXPECT_THAT(ended.out, HasSubstr(" 0 minibatches redone"));
  expect_proofs();
}

// Depths 1, 2, 4 and 8, widths 1, 2 and 3.
TEST_F(ElasticChange, TenTimesEndsWithTheBitsOfARunThatNobodyDisturbed) {
  const Words options{"--synchronous", "--lr-decay=constant", "--warmup=0",
                      "--shapes=1=1x1,2=2x1,3=1x3,4=4x1,5=5x1,6=3x2,7=7x1,8=8x1"};
  Words disturbed = options;
  disturbed.emplace_back("--checkpoint-every=50");
  start(disturbed);
  ASSERT_TRUE(trains_with(4));
  for (const int workers : {8, 6, 4, 3, 2, 1, 2, 4}) {
    const int before = generation();
    scale(workers);
    ASSERT_TRUE(trains_with(workers, before));
    ASSERT_TRUE(goes_on(10));
  }
  ASSERT_TRUE(saves(step() + 1));  // else what those four did is all undone
  int before = generation();
  send_signal(worker(0), SIGKILL);
  ASSERT_TRUE(trains_with(3, before));
  ASSERT_TRUE(goes_on(10));
  before = generation();
  scale(2);
  ASSERT_TRUE(trains_with(2, before));
  ASSERT_TRUE(goes_on(10));
  expect_stop();
  const std::vector<Stretch> all = stretches();
  EXPECT_GT(all.size(), 10);
  for (const char* shape : {" D=1 P=1 W=1 ", " D=2 ", " D=4 ", " D=8 ", " W=2 ", " W=3 "}) {
    const auto has_shape = [&](const Stretch& one) { return one.plan.find(shape) != std::string::npos; };
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), has_shape)) << shape;
  }
  expect_proofs();
  Words alone = options;
  alone.insert(alone.end(),
               {"--steps=" + std::to_string(step()), "--job=alone", "--checkpoint-every=1000", "--join-debounce=30"});
  start(alone, "alone");
  expect_end();
  EXPECT_EQ(generation(), 1);
  const Ended ends = run_program({"checkpoint", "diff", "HEAD", "HEAD", "--checkpoint-dir=" + path("saves"),
                                  "--other-job=alone", "--only=tensors"});
  EXPECT_EQ(ends.exit_code, 0) << ends.out << ends.log;
}

TEST_F(ElasticChange, OfARunOfAmdpIsWhatItsReplayDoes) {
  start({"--schedule=amdp", "--shapes=2=2x1,3=2x1,4=4x1,5=4x1,6=4x1,7=4x1,8=8x1"});
  ASSERT_TRUE(trains_with(4));
  for (const int workers : {8, 2, 4}) {
    const int before = generation();
    scale(workers);
    ASSERT_TRUE(trains_with(workers, before));
    ASSERT_TRUE(goes_on(10));
  }
  expect_stop();
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
