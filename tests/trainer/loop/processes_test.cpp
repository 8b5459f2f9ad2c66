#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/send_signal.h"
#include "tests/trainer/loop/all_workers.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/recovery/asked_stops.h"

namespace everstep::trainer {
namespace {

using scheduler::ModelFamily;
using scheduler::ScheduleKind;

TrainOptions short_training(ModelFamily family, const TestPlan& plan) {
  TrainOptions options = under_plan(tiny_training(family, plan.depth <= 4 ? 3 : 6), plan);
  options.steps = 3;
  return options;
}

class Processes : public testing::TestWithParam<TestPlan> {};

TEST_P(Processes, OverSocketsGiveTheBitsOfTheOracle) {
  for (const ModelFamily family : {ModelFamily::kGpt, ModelFamily::kBert}) {
    const TrainOptions options = short_training(family, GetParam());
    const auto data = shipped_corpus(options.model);
    EXPECT_EQ(difference_from(run_oracle(options, *data), run_in_processes(options, *data)), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Sockets, Processes,
                         testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 4}, TestPlan{ScheduleKind::kAmdp, 2, 2, 8},
                                         TestPlan{ScheduleKind::kAmdp, 4, 1, 8},
                                         TestPlan{ScheduleKind::kAmdp, 4, 2, 16},
                                         TestPlan{ScheduleKind::kAmdp, 8, 1, 16},
                                         TestPlan{ScheduleKind::kAmdp, 8, 2, 16}, clockwork(3, 1, 1, 8),
                                         clockwork(4, 2, 2, 11), clockwork(8, 2, 1, 18, 1)),
                         [](const auto& test) { return name_of(test.param); });

TEST(Processes, OverSocketsGiveTheBitsOfPlainTrainingUnderASynchronousPlan) {
  const TrainOptions options = short_training(ModelFamily::kGpt, {ScheduleKind::kAmdpSync, 4, 1, 8});
  const auto data = shipped_corpus(options.model);
  EXPECT_EQ(difference_from(run_plain_training(options, *data), run_in_processes(options, *data)), "");
}

TEST(Processes, OverSocketsEvaluateAndStopAsTheOracleDoes) {
  TrainOptions options = short_training(ModelFamily::kBert, {ScheduleKind::kAmdp, 4, 1, 6});
  const auto data = shipped_corpus(options.model);
  options.evaluate_every = 2;
  options.steps = 100;
  RunChanges changes;
  AskedStops stops([updates = 0]() mutable { return ++updates == 3; });
  changes.change_hooks = [&stops](int worker, TrainHooks& hooks) {
    if (worker == 3) hooks.stops = &stops;
  };
  const auto runs = run_in_processes(options, *data, changes);
  options.steps = 4;
  EXPECT_EQ(difference_from(run_oracle(options, *data), runs), "");
}

TEST(Processes, TellWhatWentWrong) {
  TrainOptions options = short_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 2, 1, 4});
  options.cuts.pop_back();
  const auto runs = run_in_processes(options, *shipped_corpus(options.model));
  ASSERT_FALSE(runs.ok());
  EXPECT_THAT(runs.error().message, testing::HasSubstr("the cuts do not divide"));
}

TEST(Processes, FailTogetherWhenOneDies) {
  const TrainOptions options = short_training(ModelFamily::kGpt, {ScheduleKind::kAmdp, 4, 1, 8});
  RunChanges changes;
  changes.change_hooks = [](int worker, TrainHooks& hooks) {
    if (worker == 2) hooks.on_step = [](const StepReport&) { send_signal(::getpid(), SIGKILL); };
  };
  const auto runs = run_in_processes(options, *shipped_corpus(options.model), changes);
  ASSERT_FALSE(runs.ok());
  EXPECT_THAT(runs.error().message, testing::HasSubstr("worker 2: died without a word"));
}

}  // namespace
}  // namespace everstep::trainer
