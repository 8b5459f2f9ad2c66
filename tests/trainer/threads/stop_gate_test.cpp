#include "trainer/threads/stop_gate.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

TEST(StopGate, LetsEverySuperRoundStartWhileNobodyAsks) {
  StopGate gate;
  for (std::int64_t round = 0; round < 10; ++round) {
    EXPECT_TRUE(gate.start_round(round, 0ms));
    EXPECT_EQ(gate.started(), round);
    EXPECT_EQ(gate.certain_round(), round + 1) << "a stop may come after the next one";
  }
  EXPECT_EQ(gate.last_round(), std::nullopt);
}

TEST(StopGate, AfterAPromiseOneMoreMayStartUntilTheStopIsKnown) {
  StopGate gate;
  EXPECT_TRUE(gate.start_round(3, 0ms));
  EXPECT_EQ(gate.promise(), 3);
  EXPECT_TRUE(gate.start_round(4, 0ms));
  EXPECT_EQ(gate.promise(), 3) << "a promise is made once";
  EXPECT_EQ(gate.certain_round(), 4) << "the stop may be right here";
  EXPECT_FALSE(gate.start_round(5, 1ms));
  gate.stop_after(6);
  EXPECT_EQ(gate.certain_round(), 6);
  EXPECT_TRUE(gate.start_round(6, 0ms));
  EXPECT_FALSE(gate.start_round(7, 0ms));
  EXPECT_EQ(gate.last_round(), 6);
}

TEST(StopGate, WakesWhoWaitsForTheStop) {
  StopGate gate;
  EXPECT_EQ(gate.promise(), -1);
  EXPECT_TRUE(gate.start_round(0, 0ms));
  auto waiting = std::async(std::launch::async, [&] { return gate.start_round(1, 1h); });
  gate.stop_after(2);
  EXPECT_TRUE(waiting.get());
}

TEST(StopGate, WakesWhoWaitsWhenTheRunIsBrokenOff) {
  StopGate gate;
  gate.promise();
  auto waiting = std::async(std::launch::async, [&] { return gate.start_round(1, 1h); });
  gate.give_up();
  EXPECT_FALSE(waiting.get());
  EXPECT_EQ(gate.last_round(), std::nullopt);
}

TEST(StopGate, TheStrongestWishHolds) {
  StopGate gate;
  EXPECT_EQ(gate.at_window_end(), WindowStop::kNo);
  gate.stop_at_window_end(WindowStop::kSaveAndEnd);
  gate.stop_at_window_end(WindowStop::kHandOver);
  EXPECT_EQ(gate.at_window_end(), WindowStop::kSaveAndEnd);
}

TEST(StopGateDeathTest, TwoStopsOfOneRunAreABug) {
  StopGate gate;
  gate.promise();
  gate.stop_after(4);
  gate.stop_after(4);
  EXPECT_DEATH(gate.stop_after(5), "two stops of one run");
}

}  // namespace
}  // namespace everstep::trainer
