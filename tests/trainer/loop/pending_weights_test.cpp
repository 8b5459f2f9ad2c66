#include "trainer/loop/pending_weights.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace everstep::trainer {
namespace {

using scheduler::Op;
using scheduler::OpKind;
using scheduler::parse_op;
using testing::ElementsAre;

using Next = PendingWeights::Next;

constexpr auto kCan = [] { return true; };
constexpr auto kCannot = [] { return false; };
// Where nobody may ask.
constexpr auto kUnasked = []() -> bool {
  ADD_FAILURE() << "asked whether the next op can begin";
  return true;
};

PendingWeights pending_of(const std::vector<std::string>& ops, int depth = 4) {
  PendingWeights pending(scheduler::most_pending_weights(depth));
  for (const std::string& op : ops) pending.add({parse_op(op).value(), Position{0}, 0, {}});
  return pending;
}

// What is run before the next op, in order.
std::vector<std::string> run_before(PendingWeights& pending, const Next& next) {
  std::vector<std::string> ran;
  while (const auto weights = pending.take_before(next)) ran.push_back(to_string(weights->op));
  return ran;
}

Next next_of(const std::string& op, bool closes, std::function<bool()> can_begin) {
  return {parse_op(op).value(), closes, std::move(can_begin)};
}

TEST(PendingWeights, WaitWhileTheNextOpCanBegin) {
  PendingWeights pending = pending_of({"W0.0.0@1"});
  EXPECT_THAT(run_before(pending, next_of("F0.0.1@1", false, kCan)), ElementsAre());
  EXPECT_FALSE(pending.empty());
}

TEST(PendingWeights, RunWhileTheNextOpCannotBegin) {
  PendingWeights pending = pending_of({"W0.0.0@1"});
  EXPECT_THAT(run_before(pending, next_of("F0.0.1@1", false, kCannot)), ElementsAre("W0.0.0@1"));
  EXPECT_TRUE(pending.empty());
  EXPECT_THAT(run_before(pending, next_of("F0.0.1@1", false, kUnasked)), ElementsAre());
}

TEST(PendingWeights, LookAgainAfterEachOfThem) {
  PendingWeights pending = pending_of({"W0.0.0@1", "W0.0.1@1", "W0.0.2@1"});
  int asked = 0;
  const auto comes_in_between = [&] { return ++asked == 1; };
  EXPECT_THAT(run_before(pending, next_of("F0.0.3@1", false, comes_in_between)), ElementsAre("W0.0.0@1", "W0.0.1@1"));
}

// Nobody waits there, so there is no time to fill, and what they keep would only cost memory.
TEST(PendingWeights, AreNotPutOffAtDepthOne) {
  PendingWeights pending = pending_of({"W0.0.0@0"}, 1);
  EXPECT_THAT(run_before(pending, next_of("F0.0.1@0", false, kUnasked)), ElementsAre("W0.0.0@0"));
}

TEST(PendingWeights, RunTheOldestBeforeAllElseIfThereAreTwo) {
  PendingWeights pending = pending_of({"W0.0.0@1", "W0.0.1@0"});
  const auto first = pending.take_before(next_of("F0.0.2@1", false, kUnasked));
  ASSERT_TRUE(first);
  EXPECT_EQ(to_string(first->op), "W0.0.0@1");
  EXPECT_FALSE(pending.take_before(next_of("F0.0.2@1", false, kCan)));
}

TEST(PendingWeights, OfAChunkRunBeforeItsSumIsRead) {
  for (const std::string closing : {"R0@1", "C0.0@1"}) {
    PendingWeights pending = pending_of({"W0.0.1@0", "W0.0.0@1"});
    EXPECT_THAT(run_before(pending, next_of(closing, true, kCan)), ElementsAre("W0.0.0@1"));
    EXPECT_THAT(run_before(pending, next_of("R0@0", true, kCan)), ElementsAre("W0.0.1@0"));
  }
}

TEST(PendingWeights, StayIfNothingIsCaptured) {
  PendingWeights pending = pending_of({"W0.0.0@1"});
  EXPECT_THAT(run_before(pending, next_of("C0.0@1", false, kCan)), ElementsAre());
}

TEST(PendingWeights, OfAWindowRunBeforeItsUpdate) {
  PendingWeights pending = pending_of({"W1.0.0@1", "W0.3.0@0"});
  EXPECT_THAT(run_before(pending, next_of("U0", true, kCan)), ElementsAre("W0.3.0@0"));
  EXPECT_THAT(run_before(pending, next_of("U0", true, kCannot)), ElementsAre("W1.0.0@1"));
}

TEST(PendingWeights, AreTakenOldestFirstAtTheEnd) {
  PendingWeights pending = pending_of({"W0.0.1@0", "W0.0.0@1"});
  EXPECT_EQ(to_string(pending.take_oldest()->op), "W0.0.1@0");
  EXPECT_EQ(to_string(pending.take_oldest()->op), "W0.0.0@1");
  EXPECT_FALSE(pending.take_oldest());
}

// Sums of floats remember it.
RC_GTEST_PROP(PendingWeights, OfAChunkKeepTheOrderOfTheirBackwardsWhateverElseHappens, ()) {
  PendingWeights pending = pending_of({});
  std::map<int, std::vector<int>> added;
  std::map<int, std::vector<int>> ran;
  const auto note = [&](const std::optional<WeightsOp>& weights) {
    if (weights) ran[weights->op.stage].push_back(weights->op.minibatch);
    return weights.has_value();
  };
  const int ops = *rc::gen::inRange(1, 60);
  for (int i = 0; i < ops; ++i) {
    const int stage = *rc::gen::inRange(0, 3);
    const int window = *rc::gen::inRange(0, 2);
    const auto kind = *rc::gen::element(OpKind::kForward, OpKind::kBackward, OpKind::kStartReduce, OpKind::kUpdate);
    const bool can_begin = *rc::gen::arbitrary<bool>();
    const bool closes = kind == OpKind::kStartReduce || kind == OpKind::kUpdate;
    while (note(pending.take_before({{kind, stage, i, 0, window}, closes, [&] { return can_begin; }}))) {
    }
    if (kind != OpKind::kBackward) continue;
    added[stage].push_back(i);
    pending.add({{OpKind::kBackwardWeights, stage, i, 0, i / 30}, Position{i}, 0, {}});
  }
  while (note(pending.take_oldest())) {
  }
  RC_ASSERT(ran == added);
}

}  // namespace
}  // namespace everstep::trainer
