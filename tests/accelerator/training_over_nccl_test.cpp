// Whole training runs over the emulated NCCL, one thread and one device per worker, on as many hardware queues as CUDA
// gives a GPU if nobody asks (8), and as many as there can be (32): they end, have the bits of the CPU, and nothing
// happens that no order protects.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/accelerator/nccl_runs.h"
#include "tests/accelerator/prepared_device.h"
#include "tests/trainer/loop/comparison.h"
#include "tests/trainer/loop/training_support.h"
#include "tests/trainer/socket/loopback_workers.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;
using scheduler::ModelFamily;
using scheduler::ScheduleKind;

class OverNccl : public testing::TestWithParam<TestPlan> {
 protected:
  static void expect_cpus_bits(TrainOptions options) {
    options.steps = 3;
    const auto data = shipped_corpus(options.model);
    const auto expected = run_in_threads(options, *data);
    for (const int queues : {8, 32}) {
      forget_mistakes();
      const auto counted = fake_accelerator().counters();
      const auto runs = run_in_threads(options, *data, over_nccl(queues));
      EXPECT_EQ(difference_between(expected, runs), "") << queues << " queues";
      EXPECT_EQ(race_report(), "") << queues << " queues";
      EXPECT_GT(fake_accelerator().counters().launches, counted.launches);
    }
  }
};

TEST_P(OverNccl, EndsWithTheCpusBits) {
  const TestPlan& plan = GetParam();
  expect_cpus_bits(under_plan(tiny_training(ModelFamily::kGpt, std::max(2, plan.depth - 1)), plan));
}

constexpr auto kName = [](const auto& plan) { return name_of(plan.param); };

INSTANTIATE_TEST_SUITE_P(
    Plans, OverNccl,
    testing::Values(TestPlan{ScheduleKind::kAmdp, 2, 1, 4}, TestPlan{ScheduleKind::kAmdp, 4, 1, 8},
                    TestPlan{ScheduleKind::kAmdp, 8, 1, 16}, TestPlan{ScheduleKind::kAmdp, 2, 2, 8},
                    TestPlan{ScheduleKind::kAmdp, 4, 2, 16}, TestPlan{ScheduleKind::kOneFOneB, 2, 1, 4},
                    TestPlan{ScheduleKind::kOneFOneB, 4, 1, 8}, TestPlan{ScheduleKind::kOneFOneB, 8, 1, 16},
                    TestPlan{ScheduleKind::kOneFOneB, 2, 2, 8}, TestPlan{ScheduleKind::kOneFOneB, 4, 2, 16},
                    trainer::clockwork(2, 1, 1, 4), trainer::clockwork(4, 2, 1, 8), trainer::clockwork(8, 4, 1, 16),
                    trainer::clockwork(2, 1, 2, 11), trainer::clockwork(4, 2, 2, 19),
                    trainer::provisional({ScheduleKind::kAmdp, 4, 1, 8}, 1),
                    trainer::provisional(trainer::clockwork(4, 2, 1, 8), 1),
                    trainer::provisional(trainer::clockwork(2, 1, 2, 11), 1)),
    kName);

// Sixteen workers: more than half of the time of all of them.
#ifdef EVERSTEP_LONG_TESTS
INSTANTIATE_TEST_SUITE_P(LongPlans, OverNccl,
                         testing::Values(TestPlan{ScheduleKind::kAmdp, 8, 2, 32},
                                         TestPlan{ScheduleKind::kOneFOneB, 8, 2, 32}, trainer::clockwork(8, 4, 2, 21)),
                         kName);
#endif

}  // namespace
}  // namespace everstep::accelerator
