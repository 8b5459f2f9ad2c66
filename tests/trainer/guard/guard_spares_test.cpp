#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/trainer/guard/guarded_chain.h"
#include "tests/trainer/handover/handover_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

constexpr int kWindow = 12;

void run_checked(GuardedChain& chain, const GuardedGeneration& next) {
  const Status ran = chain.run(next);
  ASSERT_TRUE(ran) << ran.error();
  ASSERT_GE(chain.version().value, chain.newest_update() - 1);
  ASSERT_EQ(chain.difference_from_reference(), "") << "at version " << chain.version();
}

GuardedGeneration with_spare(std::map<int, CallTest> dies) {
  return {ScheduleKind::kOneFOneB, 3, 1, {0, 1, 2}, 1, {8}, {}, std::move(dies)};
}

TEST(GuardingSpare, FollowsARunToItsEnd) {
  GuardedChain chain(chain_options(kWindow, 4));
  run_checked(chain, with_spare({}));
  EXPECT_EQ(chain.version(), Version{4});
  EXPECT_EQ(chain.members().at(8).copies->at({4})->guarded.size(), 3U) << "it guards every stage";
}

TEST(GuardingSpare, TakesThePlaceOfAWorkerThatDied) {
  for (const int dead : {0, 1, 2}) {
    GuardedChain chain(chain_options(kWindow, 7));
    run_checked(chain, with_spare({{dead, at_send(dead < 2 ? FrameKind::kActivation : FrameKind::kInputGradient, 3)}}));
    EXPECT_GE(chain.version(), Version{2});
    run_checked(chain, {ScheduleKind::kAmdp, 2, 1, {8, dead == 2 ? 1 : 2}, 1, {}, {dead == 0 ? 1 : 0}, {}});
    EXPECT_EQ(chain.version(), Version{7});
  }
}

TEST(GuardingSpare, IsNoPartOfTrainingWhenItDies) {
  GuardedChain chain(chain_options(kWindow, 7));
  run_checked(chain, with_spare({{8, at_send(FrameKind::kCopiesCame, 3)}}));
  EXPECT_GE(chain.version(), Version{2});
  run_checked(chain, {ScheduleKind::kOneFOneB, 2, 1, {2, 0}, 1, {9}, {1}, {}});
  EXPECT_EQ(chain.version(), Version{7});
}

TEST(GuardingSpare, CoversADeathAtAnyPoint) {
  GuardedChain undisturbed(chain_options(kWindow, 4));
  run_checked(undisturbed, with_spare({}));
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    const RandomStream random(seed, 8);
    const auto dead = std::vector<int>{0, 1, 2, 8}[random.below(0, 4)];
    const auto calls = static_cast<std::uint64_t>(undisturbed.members().at(dead).calls);
    GuardedChain chain(chain_options(kWindow, 4));
    run_checked(chain, with_spare({{dead, at_call(static_cast<std::int64_t>(random.below(1, calls)))}}));
    std::vector<int> left{0, 1, 2, 8};
    std::erase(left, dead);
    run_checked(chain, {ScheduleKind::kOneFOneB, 3, 1, left, 1, {9}, {}, {}});
    EXPECT_EQ(chain.version(), Version{4});
  }
}

}  // namespace
}  // namespace everstep::trainer
