#include "launcher/job/train_plan.h"

#include <gmock/gmock.h>

#include "tests/launcher/job/train_config.h"

namespace everstep::launcher {
namespace {

using scheduler::ScheduleKind;
using testing::HasSubstr;

Result<TrainPlan> plan_of(std::vector<std::string> args) {
  args.emplace_back("--data=corpus.txt");
  return make_train_plan(train_request(args));
}

TEST(TrainPlan, KeepsTheWishes) {
  const auto made = plan_of({"--workers=8", "--schedule=amdp", "--depth=4", "--width=2", "--window=20"});
  ASSERT_TRUE(made.ok()) << made.error();
  EXPECT_EQ(made->plan.kind, ScheduleKind::kAmdp);
  EXPECT_EQ(made->plan.pipelines, 2);
  EXPECT_EQ(made->plan.workers.size(), 8U);
  EXPECT_EQ(made->plan.window, 20);
  EXPECT_GT(made->predicted_bytes, 0);
}

TEST(TrainPlan, LaysOutKindsThatThePlannerOnlyComparesWith) {
  const auto interleaved = plan_of({"--workers=4", "--schedule=interleaved"});
  ASSERT_TRUE(interleaved.ok()) << interleaved.error();
  EXPECT_EQ(interleaved->plan.depth, 4);
  EXPECT_EQ(interleaved->plan.cuts.size(), 9U);
  EXPECT_TRUE(check(interleaved->plan).ok());
  const auto gpipe = plan_of({"--workers=4", "--schedule=gpipe", "--width=2"});
  ASSERT_TRUE(gpipe.ok()) << gpipe.error();
  EXPECT_EQ(gpipe->plan.depth, 2);
  EXPECT_EQ(gpipe->plan.workers.size(), 4U);
  // All minibatches of a window are in flight at once.
  EXPECT_GT(gpipe->predicted_bytes,
            plan_of({"--workers=4", "--schedule=1f1b", "--depth=2", "--width=2"})->predicted_bytes);
}

TEST(TrainPlan, CountsWhatCheckpointsAreWrittenFrom) {
  const auto bytes = [](const std::string& schedule, bool saves) {
    std::vector<std::string> args{"--workers=2", "--depth=2", "--etcd=none", "--schedule=" + schedule};
    if (saves) args.emplace_back("--checkpoint-dir=checkpoints");
    return plan_of(args)->predicted_bytes;
  };
  const std::int64_t flushed = bytes("1f1b", true) - bytes("1f1b", false);
  const std::int64_t live = bytes("amdp", true) - bytes("amdp", false);
  EXPECT_GT(flushed, 0);
  EXPECT_EQ(3 * live, 4 * flushed) << "weights and two moments; in a running pipeline the weights before, too";
}

TEST(TrainPlan, RefusesWhatCannotWork) {
  const auto reason = [](std::vector<std::string> args) { return plan_of(std::move(args)).error().message; };
  EXPECT_THAT(reason({"--workers=4", "--depth=4", "--window=3"}), HasSubstr("window of at least as many minibatches"));
  EXPECT_THAT(reason({"--workers=4", "--schedule=gpipe", "--window=3"}), HasSubstr("window"));
  EXPECT_THAT(reason({"--workers=4", "--schedule=gpipe", "--depth=8"}), HasSubstr("more than the 4 workers"));
  EXPECT_THAT(reason({"--workers=8", "--schedule=interleaved"}), HasSubstr("more than the model has blocks (10)"));
  EXPECT_THAT(reason({"--workers=4", "--schedule=gpipe", "--memory-gib=0.01"}), HasSubstr("more than the 0.01 GiB"));
}

TEST(TrainPlan, IsTheSameInEveryProcess) {
  const std::vector<std::string> args{"--workers=7", "--window=30"};
  EXPECT_EQ(plan_of(args)->plan, plan_of(args)->plan);
}

TEST(TrainPlan, DescribesWhatAllMustAgreeOn) {
  const auto made = plan_of({"--workers=2", "--depth=2", "--schedule=amdp"});
  EXPECT_THAT(describe_setup(made->plan),
              HasSubstr("amdp D=2 P=1 W=1 M=16 preload=2 provisional=1 cuts=0,5,10 everstep="));
}

// A late update hides sums that take long, and only those: what is emulated is what is planned for.
TEST(TrainPlan, IsMadeForTheTimesAndLinksThatAreEmulated) {
  const auto planned = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--workers=4", "--depth=4", "--pipelines=2", "--window=32"});
    const auto made = plan_of(more);
    EXPECT_TRUE(made.ok()) << made.error();
    return *made;
  };
  const TrainPlan fast = planned({"--emulate=10:10:10"});
  const TrainPlan slow = planned({"--emulate=10:10:10", "--emulate-link=0.1"});
  EXPECT_EQ(fast.plan.lag, 0);
  EXPECT_GT(slow.plan.lag, 0);
  // 32 minibatches through two stages of two pipelines: each worker has 32 times 30 ms to do.
  EXPECT_NEAR(to_seconds(fast.predicted_window), 0.96, 0.05);
  EXPECT_GT(slow.predicted_window, fast.predicted_window);
  EXPECT_NEAR(to_seconds(planned({"--emulate=model:40:40:40"}).predicted_window), 0.96, 0.2);
  EXPECT_GT(planned({}).plan.provisional, 0);
}

// Every stage would be as fast however many there are, so these times say nothing about how many there should be.
TEST(TrainPlan, HasTheDepthAndWidthThatItWouldHaveIfItWereNotEmulated) {
  for (const char* workers : {"--workers=3", "--workers=5", "--workers=8"}) {
    const auto computed = plan_of({workers, "--window=32"});
    const auto emulated = plan_of({workers, "--window=32", "--emulate=10:20"});
    ASSERT_TRUE(computed.ok() && emulated.ok());
    EXPECT_EQ(emulated->plan.depth, computed->plan.depth);
    EXPECT_EQ(emulated->plan.width, computed->plan.width);
  }
}

TEST(TrainPlan, SharesTheEmulatedTimeBetweenTheStagesOfAWorker) {
  using std::chrono::milliseconds;
  const auto amdp = plan_of({"--workers=4", "--depth=4", "--schedule=amdp"});
  EXPECT_EQ(emulated_times({10, 20, 6}, amdp->plan),
            (trainer::EmulatedTimes{milliseconds(10), milliseconds(20), milliseconds(6)}));
  const auto interleaved = plan_of({"--workers=4", "--schedule=interleaved"});
  EXPECT_EQ(emulated_times({10, 20, 6}, interleaved->plan),
            (trainer::EmulatedTimes{milliseconds(5), milliseconds(10), milliseconds(3)}));
}

TEST(TrainPlan, SharesTheEmulatedTimeOfAModelByWhatItsBlocksCost) {
  const TrainRequest request = train_request({"--workers=4", "--emulate=model:100:200"});
  ASSERT_TRUE(request.emulation && request.emulation->of_model);
  const scheduler::ModelProfile profile = train_profile(request);
  const auto blocks = static_cast<int>(profile.blocks.size());
  std::chrono::nanoseconds forward{};
  for (int block = 0; block < blocks; ++block)
    forward += emulated_part(*request.emulation, profile, block, block + 1).forward;
  EXPECT_NEAR(static_cast<double>(forward.count()), 100e6, blocks);
  const auto part = emulated_part(*request.emulation, profile, 1, 3);
  EXPECT_NEAR(static_cast<double>(part.backward.count()), 2 * static_cast<double>(part.forward.count()), 2);
}

TEST(TrainPlan, CountsTheCopiesThatAreKeptInCaseAWorkerIsLost) {
  const auto copies = [](const std::string& redundancy) {
    return plan_of({"--workers=4", "--schedule=1f1b", "--depth=4", redundancy})->copy_bytes;
  };
  EXPECT_EQ(copies("--redundancy=0"), 0);
  EXPECT_GT(copies("--redundancy=2"), copies("--redundancy=1"));
  EXPECT_GT(copies("--redundancy=1"), 0);
}

TEST(TrainPlan, BecomesTheOptionsOfTheLoop) {
  const TrainRequest request = train_request({"--workers=2", "--data=x", "--steps=7"});
  const auto made = make_train_plan(request);
  const trainer::TrainOptions options = train_options_of(request, *made, 42);
  EXPECT_EQ(options.steps, 7);
  EXPECT_EQ(options.lineage, 42U);
  EXPECT_EQ(options.cuts, made->plan.cuts);
  EXPECT_EQ(options.schedule.depth, made->plan.depth);
}

}  // namespace
}  // namespace everstep::launcher
