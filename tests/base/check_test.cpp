#include "base/check.h"

#include <csignal>
#include <cstdio>
#include <string>

#include <gtest/gtest.h>

namespace everstep {
namespace {

std::string evaluated(bool& flag, std::string message) {
  flag = true;
  return message;
}

void print_dump(std::string_view message) {
  std::fprintf(stderr, "dump after <%.*s>\n", static_cast<int>(message.size()), message.data());
}

TEST(Check, LetsATrueConditionPassWithoutBuildingTheMessage) {
  bool built = false;
  EVERSTEP_CHECK(1 + 1 == 2, evaluated(built, "arithmetic broke"));
  EXPECT_FALSE(built);
}

TEST(Check, EvaluatesItsConditionOnce) {
  int calls = 0;
  EVERSTEP_CHECK(++calls == 1, "");
  EXPECT_EQ(calls, 1);
}

TEST(Check, IsOneStatement) {
  bool other_branch = false;
  if (true)
    EVERSTEP_CHECK(true, "");
  else
    other_branch = true;
  EXPECT_FALSE(other_branch);
}

TEST(CheckDeathTest, AbortsWithThePlaceTheConditionAndTheMessage) {
  const int workers = 3;
  EXPECT_EXIT(EVERSTEP_CHECK(workers == 4, "lost " + std::to_string(4 - workers) + " worker"),
              ::testing::KilledBySignal(SIGABRT), "check_test.cpp:[0-9]+: check failed: workers == 4: lost 1 worker\n");
}

TEST(CheckDeathTest, RunsTheHookWithTheWholeMessageBeforeItAborts) {
  const auto fail_with_hook = [] {
    set_check_failure_hook(print_dump);
    EVERSTEP_CHECK(false, "the reason");
  };
  EXPECT_EXIT(fail_with_hook(), ::testing::KilledBySignal(SIGABRT),
              "check failed: false: the reason\n(.|\n)*dump after <.*check failed: false: the reason");
}

TEST(CheckDeathTest, NeedsNoHook) {
  const auto fail_after_unset = [] {
    set_check_failure_hook(print_dump);
    set_check_failure_hook(nullptr);
    EVERSTEP_CHECK(false, "bare");
  };
  EXPECT_EXIT(fail_after_unset(), ::testing::KilledBySignal(SIGABRT), "check failed: false: bare\n$");
}

}  // namespace
}  // namespace everstep
