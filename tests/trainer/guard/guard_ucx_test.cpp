#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/trainer/guard/guarded_chain.h"
#include "tests/trainer/handover/handover_chain.h"
#include "tests/trainer/ucx/loopback_workers.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

// Copies over real connections, a worker dying at any call, and another generation over new ones.
TEST(GuardOverUcx, CoversADeathAtAnyPoint) {
  const GuardedGeneration whole{ScheduleKind::kAmdp, 4, 1, {0, 1, 2, 3}};
  const TrainOptions options = chain_options(12, 4);
  GuardedChain undisturbed(options);
  undisturbed.make_transports = make_ucx_transports;
  ASSERT_TRUE(undisturbed.run(whole));
  ASSERT_EQ(undisturbed.difference_from_reference(), "");
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    const RandomStream random(seed, 9);
    GuardedChain chain(options);
    chain.make_transports = make_ucx_transports;
    std::vector<int> left{0, 1, 2, 3};
    const int dead = left[random.below(0, left.size())];
    const auto calls = static_cast<std::uint64_t>(undisturbed.members().at(dead).calls);
    GuardedGeneration next = whole;
    next.dies[dead] = at_call(static_cast<std::int64_t>(random.below(1, calls)));
    const Status ran = chain.run(next);
    ASSERT_TRUE(ran) << ran.error();
    EXPECT_GE(chain.version().value, chain.newest_update() - 1);
    ASSERT_EQ(chain.difference_from_reference(), "");
    std::erase(left, dead);
    const Status went_on = chain.run({ScheduleKind::kOneFOneB, 2, 1, {left[2], left[0]}, 1, {left[1]}});
    ASSERT_TRUE(went_on) << went_on.error();
    EXPECT_EQ(chain.version(), Version{4});
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
}

}  // namespace
}  // namespace everstep::trainer
