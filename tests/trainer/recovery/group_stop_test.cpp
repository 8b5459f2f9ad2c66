#include "trainer/recovery/group_stop.h"

#include <cstring>

#include <gtest/gtest.h>

#include "tests/trainer/recovery/guarded_chain.h"
#include "tests/trainer/recovery/handover_chain.h"
#include "tests/trainer/recovery/random_chain.h"

namespace everstep::trainer {
namespace {

using scheduler::ScheduleKind;

// ---- where a group stops ----

constexpr Tick kLimit = 1000;
constexpr int kWorth = rounds_worth_waiting(4, 4);
const SuperRounds kRounds(Position{0}, 12, 4);  // three of them per window

GroupWord word(std::int64_t started, std::int64_t bound, Tick round_time = 10) {
  return {true, 1, started, bound, round_time};
}

TEST(AgreedStop, IsTheLastSuperRoundThatAnybodyHasBegunOrWaitsFor) {
  EXPECT_EQ(agreed_stop({word(3, 3), word(4, 4)}, kRounds, kWorth, kLimit), 4);
  EXPECT_EQ(agreed_stop({word(3, 5), word(4, 4)}, kRounds, kWorth, kLimit), 5);
  EXPECT_EQ(agreed_stop({word(2, 2), word(2, 3)}, kRounds, kWorth, kLimit), 3);  // has not begun the window, but will
}

TEST(AgreedStop, IsNoneIfSomebodyCannotOrItLiesInAnotherWindow) {
  EXPECT_EQ(agreed_stop({word(3, 3), {}}, kRounds, kWorth, kLimit), std::nullopt);
  GroupWord later = word(3, 3);
  later.window = 2;
  EXPECT_EQ(agreed_stop({word(3, 3), later}, kRounds, kWorth, kLimit), std::nullopt);
  EXPECT_EQ(agreed_stop({word(3, 3), word(5, 6)}, kRounds, kWorth, kLimit), std::nullopt);
  EXPECT_EQ(agreed_stop({word(2, 2), word(2, 2)}, kRounds, kWorth, kLimit), std::nullopt);
  EXPECT_EQ(agreed_stop({word(-1, -1)}, kRounds, kWorth, kLimit), std::nullopt);
}

TEST(AgreedStop, IsNoneIfItIsTooFarAway) {
  const SuperRounds rounds(Position{0}, 40, 4);  // ten of them per window
  EXPECT_EQ(agreed_stop({word(10, 14, 200)}, rounds, kWorth, kLimit), 14);
  EXPECT_EQ(agreed_stop({word(10, 14, 201)}, rounds, kWorth, kLimit), std::nullopt);
  EXPECT_EQ(agreed_stop({word(10, 12, 100), word(12, 14, 201)}, rounds, kWorth, kLimit), std::nullopt);
}

TEST(AgreedStop, MayBeAsFarAwayInShorterRounds) {
  EXPECT_EQ(rounds_worth_waiting(8, 8), 4);
  EXPECT_EQ(rounds_worth_waiting(8, 4), 8);
  EXPECT_EQ(rounds_worth_waiting(7, 1), 28);
  const SuperRounds rounds(Position{0}, 40, 1);
  EXPECT_EQ(agreed_stop({word(40, 67, 100 * kLimit)}, rounds, rounds_worth_waiting(7, 1), kLimit), 67);
  EXPECT_EQ(agreed_stop({word(40, 68, 100 * kLimit)}, rounds, rounds_worth_waiting(7, 1), kLimit), std::nullopt);
}

TEST(AgreedStop, MayBeFourSuperRoundsAwayHoweverLongTheyTake) {
  EXPECT_EQ(agreed_stop({word(2, 5, 100 * kLimit)}, kRounds, kWorth, kLimit), 5);
}

// ---- deaths ----

constexpr int kWindow = 24;
constexpr std::int64_t kSteps = 4;

struct Shape {
  ScheduleKind kind;
  int depth;
  int width;
  int pipelines = 0;
  int lag = 0;
  int provisional = 0;
};

class GroupStop : public testing::TestWithParam<Shape> {
 protected:
  static GuardedGeneration generation() {
    const Shape& shape = GetParam();
    GuardedGeneration made{shape.kind, shape.depth, shape.width, names(0, shape.depth * shape.width)};
    made.pipelines = shape.pipelines;
    made.lag = shape.lag;
    made.provisional = shape.provisional;
    return made;
  }

  // The first origin that a group kept sums for; nobody may fail to find one.
  static GuardedChain with_group_sums(const TrainOptions& options, GuardedGeneration& last,
                                      const std::function<void(EndState&)>& change = nullptr) {
    GuardedChain undisturbed(options);
    EXPECT_TRUE(undisturbed.run(generation()));
    for (std::uint64_t seed = 0; seed < 60; ++seed) {
      GuardedChain chain(options);
      chain.change_sums = change;
      last = with_a_death(generation(), undisturbed, seed);
      const Status ran = chain.run(last);
      EXPECT_TRUE(ran) << ran.error();
      if (!chain.ranges_in_sums().empty()) return chain;
    }
    ADD_FAILURE() << "no group ever kept its sums";
    return GuardedChain(options);
  }
};

// Wherever a worker dies, those who are left go on with the right bits, and what a group kept is not run again. Of the
// kills, which fall anywhere, a good part must lie where a group can keep its sums.
TEST_P(GroupStop, KeepsWhatTheGroupHasRunWhereverAWorkerOfAnotherDies) {
  const TrainOptions options = chain_options(kWindow, kSteps);
  GuardedChain undisturbed(options);
  ASSERT_TRUE(undisturbed.run(generation()));
  constexpr int kKills = 40;
  int kept = 0;
  for (std::uint64_t seed = 0; seed < kKills; ++seed) {
    SCOPED_TRACE(seed);
    GuardedChain chain(options);
    const GuardedGeneration last = with_a_death(generation(), undisturbed, seed);
    const Status ran = chain.run(last);
    ASSERT_TRUE(ran) << ran.error();
    EXPECT_GE(chain.version().value, chain.newest_update() - 1);
    ASSERT_EQ(chain.difference_from_reference(), "");
    const std::vector<WindowHistory> ranges = chain.ranges_in_sums();
    kept += ranges.empty() ? 0 : 1;
    const std::vector<int> left = left_of(last);
    const auto workers = static_cast<int>(left.size());
    const bool is_wide = seed % 2 == 0;
    const Status went_on = chain.run({ScheduleKind::kOneFOneB, is_wide ? 1 : workers, is_wide ? workers : 1, left});
    ASSERT_TRUE(went_on) << went_on.error();
    EXPECT_EQ(chain.version(), Version{kSteps});
    EXPECT_EQ(run_again(chain, ranges), "");
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
  EXPECT_GT(kept, kKills / 5);
}

// Cuts inside the window, which belong to all groups, do not get in the way; and an asynchronous pipeline, which begins
// the next window before this one's update, may follow.
TEST_P(GroupStop, GoesTogetherWithCutsInsideWindows) {
  TrainOptions options = chain_options(kWindow, kSteps);
  options.checkpoints.every_rounds = 2;
  GuardedGeneration last;
  for (int time = 0; time < 5; ++time) {
    GuardedChain chain = with_group_sums(options, last);
    const std::vector<int> left = left_of(last);
    const GuardedGeneration next{ScheduleKind::kAmdp, 2, 1, {left[1], left[0]}, 1, {left.begin() + 2, left.end()}};
    const Status went_on = chain.run(next);
    ASSERT_TRUE(went_on) << went_on.error();
    EXPECT_EQ(chain.version(), Version{kSteps});
    ASSERT_EQ(chain.difference_from_reference(), "");
  }
}

// A second death in the window of which ranges were kept: it is run again as a whole.
TEST_P(GroupStop, ASecondDeathInThatWindowIsMadeGoodFromCopies) {
  const TrainOptions options = chain_options(kWindow, kSteps);
  GuardedGeneration last;
  GuardedChain chain = with_group_sums(options, last);
  const std::vector<int> left = left_of(last);
  const std::int64_t window = chain.version().value;
  GuardedGeneration next{ScheduleKind::kOneFOneB, 1, static_cast<int>(left.size()), left};
  next.dies[left[1]] = at_send(FrameKind::kRecord, window);
  const Status ran = chain.run(next);
  ASSERT_TRUE(ran) << ran.error();
  EXPECT_EQ(chain.version(), Version{window});
  EXPECT_TRUE(chain.ranges_in_sums().empty());
  ASSERT_EQ(chain.difference_from_reference(), "");
  const Status went_on = chain.run({ScheduleKind::kOneFOneB, 1, 1, {left[0]}});
  ASSERT_TRUE(went_on) << went_on.error();
  EXPECT_EQ(chain.version(), Version{kSteps});
  ASSERT_EQ(chain.difference_from_reference(), "");
}

// A stop that is asked for inside that window comes at its end.
TEST_P(GroupStop, AStopInsideThatWindowWaitsForItsEnd) {
  GuardedGeneration last;
  GuardedChain chain = with_group_sums(chain_options(kWindow, kSteps), last);
  const std::vector<WindowHistory> ranges = chain.ranges_in_sums();
  const std::vector<int> left = left_of(last);
  GuardedGeneration next{ScheduleKind::kOneFOneB, static_cast<int>(left.size()), 1, left};
  next.stops_at_once = true;
  const std::int64_t window = chain.version().value;
  const Status stopped = chain.run(next);
  ASSERT_TRUE(stopped) << stopped.error();
  EXPECT_EQ(chain.version(), Version{window + 1});
  EXPECT_EQ(run_again(chain, ranges), "");
  ASSERT_EQ(chain.difference_from_reference(), "");
}

// ---- mistakes that must be noticed ----

class GroupStopControls : public GroupStop {
 protected:
  static std::string difference_with(const std::function<void(EndState&)>& change) {
    GuardedGeneration last;
    GuardedChain chain = with_group_sums(chain_options(kWindow, kSteps), last, change);
    const std::vector<int> left = left_of(last);
    const Status went_on = chain.run({ScheduleKind::kOneFOneB, static_cast<int>(left.size()), 1, left});
    return went_on ? chain.difference_from_reference() : went_on.error().message;
  }
};

TEST_P(GroupStopControls, NoMistakeIsNoDifference) { EXPECT_EQ(difference_with(nullptr), ""); }

TEST_P(GroupStopControls, SumsThatWereDroppedAreNoticed) {
  EXPECT_NE(difference_with([](EndState& state) {
              for (const StagedStage& stage : state.stages) {
                const Buffer& sums = stage.state.gradients;
                if (!sums.empty()) std::memset(sums.data, 0, sums.size);
              }
            }),
            "");
}

TEST_P(GroupStopControls, MinibatchesThatAreRunAgainAreNoticed) {
  EXPECT_NE(difference_with([](EndState& state) { state.resume.in_sums.pop_back(); }), "");
}

TEST_P(GroupStopControls, ALossThatIsAnothersIsNoticed) {
  EXPECT_NE(difference_with([](EndState& state) { state.resume.in_sums.front().losses.front() += 1; }), "");
}

std::string name_of(const testing::TestParamInfo<Shape>& test) {
  std::string name{to_string(test.param.kind)};
  std::erase_if(name, [](char letter) { return letter == '-'; });
  return name + "_D" + std::to_string(test.param.depth) + "_W" + std::to_string(test.param.width) + "_P" +
         std::to_string(test.param.pipelines) + "_lag" + std::to_string(test.param.lag) +
         (test.param.provisional > 0 ? "_provisional" + std::to_string(test.param.provisional) : "");
}

INSTANTIATE_TEST_SUITE_P(OfSomeShapes, GroupStop,
                         testing::Values(Shape{ScheduleKind::kAmdp, 2, 3}, Shape{ScheduleKind::kAmdp, 4, 2, 0, 0, 1},
                                         Shape{ScheduleKind::kOneFOneB, 3, 2},
                                         Shape{ScheduleKind::kTwoDirections, 4, 2},
                                         Shape{ScheduleKind::kClockwork, 4, 2},
                                         Shape{ScheduleKind::kClockwork, 3, 2, 1, 1, 2}),
                         name_of);
#ifdef EVERSTEP_LONG_TESTS
INSTANTIATE_TEST_SUITE_P(OfOtherShapes, GroupStop,
                         testing::Values(Shape{ScheduleKind::kAmdp, 2, 2}, Shape{ScheduleKind::kAmdp, 4, 2},
                                         Shape{ScheduleKind::kOneFOneB, 2, 3}, Shape{ScheduleKind::kOneFOneB, 2, 2},
                                         Shape{ScheduleKind::kClockwork, 2, 2}, Shape{ScheduleKind::kClockwork, 3, 2},
                                         Shape{ScheduleKind::kClockwork, 4, 2, 1},
                                         Shape{ScheduleKind::kClockwork, 2, 3, 1, 1},
                                         Shape{ScheduleKind::kClockwork, 4, 2, 2, 0, 2}),
                         name_of);
#endif
INSTANTIATE_TEST_SUITE_P(OfAnAsynchronousPipeline, GroupStopControls,
                         testing::Values(Shape{ScheduleKind::kAmdp, 2, 2}, Shape{ScheduleKind::kClockwork, 4, 2}),
                         name_of);

}  // namespace
}  // namespace everstep::trainer
