#include "trainer/socket/log_hook.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/stranger.h"

namespace everstep::trainer {
namespace {

TEST(LimitedLog, ThatGoesNowhereStaysSo) { EXPECT_FALSE(limit_rate({})); }

TEST(LimitedLog, HandsOnAFewLinesAsTheyAre) {
  LogLines lines;
  const LogHook log = limit_rate(lines.hook());
  for (int i = 0; i < 20; ++i) log("line " + std::to_string(i));
  ASSERT_EQ(std::ssize(lines.lines()), 20);
  EXPECT_EQ(lines.lines().front(), "line 0");
  EXPECT_EQ(lines.lines().back(), "line 19");
}

TEST(LimitedLog, KeepsTheRestBackAndSaysHowMany) {
  LogLines lines;
  const LogHook log = limit_rate(lines.hook());
  const LogHook copy = log;  // counts with it
  int told = 0;
  const auto tell = [&] { (++told % 2 == 0 ? log : copy)("line"); };
  while (told < 10'000) tell();
  EXPECT_LT(std::ssize(lines.lines()), 25);
  EXPECT_TRUE(comes_true([&] {
    tell();
    return lines.count("event=lines_kept_back count=") > 0;
  }));
  EXPECT_GT(lines.count("line"), 20);
}

TEST(LimitedLog, MayBeUsedByManyThreads) {
  LogLines lines;
  const LogHook log = limit_rate(lines.hook());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int line = 0; line < 1000; ++line) log("line");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(std::ssize(lines.lines()), 20);
  EXPECT_LT(std::ssize(lines.lines()), 30);
}

}  // namespace
}  // namespace everstep::trainer
