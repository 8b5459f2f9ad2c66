#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/trainer/recovery/guarded_chain.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "tests/trainer/recovery/random_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

constexpr int kWindow = 12;
constexpr std::int64_t kSteps = 4;

struct Shape {
  ScheduleKind kind;
  int depth;
  int width;
  int deaths;  // at once
  int pipelines = 0;
  int lag = 0;
  int provisional = 0;
};

class KillPoints : public testing::TestWithParam<Shape> {
 protected:
  static GuardedGeneration generation() {
    const Shape& shape = GetParam();
    GuardedGeneration made{shape.kind, shape.depth, shape.width, names(0, shape.depth * shape.width), shape.deaths};
    made.pipelines = shape.pipelines;
    made.lag = shape.lag;
    made.provisional = shape.provisional;
    return made;
  }
};

// Any workers die at any of their calls to the transport: in a pass, a reduce, an exchange, a broadcast, while copies
// travel. Those who are left have every stage at a common version, that version is right, and it is the newest but one
// at least.
TEST_P(KillPoints, LeaveACommonVersionWhereverTheyLie) {
  GuardedChain undisturbed(chain_options(kWindow, kSteps));
  ASSERT_TRUE(undisturbed.run(generation()));
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const RandomStream random(seed, 7);
    GuardedGeneration next = generation();
    for (std::uint64_t draw = 0; std::ssize(next.dies) < GetParam().deaths; ++draw) {
      const auto name = static_cast<int>(random.below(2 * draw, next.workers.size()));
      const auto calls = static_cast<std::uint64_t>(undisturbed.members().at(name).calls);
      next.dies[name] = at_call(static_cast<std::int64_t>(random.below(2 * draw + 1, calls)));
    }
    GuardedChain chain(chain_options(kWindow, kSteps));
    const Status ran = chain.run(next);
    ASSERT_TRUE(ran) << ran.error();
    EXPECT_GE(chain.version().value, chain.newest_update() - 1);
    ASSERT_EQ(chain.difference_from_reference(), "");
    const std::vector<int> left = left_of(next);
    const auto workers = static_cast<int>(left.size());
    ASSERT_TRUE(chain.run({ScheduleKind::kOneFOneB, workers, 1, left}));
    EXPECT_EQ(chain.version(), Version{kSteps});
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
}

std::string name_of(const testing::TestParamInfo<Shape>& test) {
  std::string name{to_string(test.param.kind)};
  std::erase_if(name, [](char letter) { return letter == '-'; });
  return name + "_D" + std::to_string(test.param.depth) + "_W" + std::to_string(test.param.width) + "_" +
         std::to_string(test.param.deaths) + "deaths_P" + std::to_string(test.param.pipelines) + "_lag" +
         std::to_string(test.param.lag) +
         (test.param.provisional > 0 ? "_provisional" + std::to_string(test.param.provisional) : "");
}

INSTANTIATE_TEST_SUITE_P(
    OfSomeShapes, KillPoints,
    testing::Values(Shape{ScheduleKind::kAmdp, 4, 1, 1}, Shape{ScheduleKind::kAmdp, 4, 2, 2},
                    Shape{ScheduleKind::kAmdp, 2, 2, 1, 0, 0, 1}, Shape{ScheduleKind::kOneFOneB, 3, 1, 1},
                    Shape{ScheduleKind::kOneFOneB, 1, 3, 2}, Shape{ScheduleKind::kGpipe, 3, 1, 2},
                    Shape{ScheduleKind::kTwoDirections, 4, 1, 1}, Shape{ScheduleKind::kClockwork, 3, 1, 1},
                    Shape{ScheduleKind::kClockwork, 4, 1, 2, 2, 1}, Shape{ScheduleKind::kClockwork, 4, 1, 1, 2, 0, 1},
                    Shape{ScheduleKind::kClockworkSync, 4, 1, 1}),
    name_of);
#ifdef EVERSTEP_LONG_TESTS
INSTANTIATE_TEST_SUITE_P(OfOtherShapes, KillPoints,
                         testing::Values(Shape{ScheduleKind::kAmdp, 4, 1, 2}, Shape{ScheduleKind::kAmdp, 2, 2, 1},
                                         Shape{ScheduleKind::kOneFOneB, 2, 2, 1},
                                         Shape{ScheduleKind::kClockwork, 4, 1, 1},
                                         Shape{ScheduleKind::kClockwork, 2, 2, 1},
                                         Shape{ScheduleKind::kClockwork, 8, 1, 1, 2},
                                         Shape{ScheduleKind::kClockwork, 2, 2, 1, 1, 0, 2}),
                         name_of);
#endif

}  // namespace
}  // namespace everstep::trainer
