#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tidy/tidy_rules.h"

namespace everstep::tidy {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto violation(int line, const std::string& part_of_message) {
  return AllOf(Field(&Violation::line, line), Field(&Violation::message, HasSubstr(part_of_message)),
               Field(&Violation::message, HasSubstr("(hint: ")));
}

TEST(Text, OfAnOrdinaryHeaderIsFine) {
  EXPECT_THAT(check_text({"base/ids.h", "#pragma once\n\nnamespace everstep {}\n"}), IsEmpty());
}

TEST(Text, HasNoTabsNoCarriageReturnsAndNoTrailingSpace) {
  EXPECT_THAT(check_text({"README.md", "fine\na\tb\n"}), ElementsAre(violation(2, "a tab")));
  EXPECT_THAT(check_text({"README.md", "fine\r\n"}), ElementsAre(violation(1, "a carriage return")));
  EXPECT_THAT(check_text({"scripts/test", "fine\n\nends here \n"}), ElementsAre(violation(3, "white space")));
}

TEST(Text, EndsWithALineFeed) {
  EXPECT_THAT(check_text({"README.md", "fine"}), ElementsAre(violation(0, "no line feed")));
  EXPECT_THAT(check_text({"README.md", ""}), IsEmpty());
}

TEST(Text, LeavesNothingOpen) {
  for (const std::string word : {"TO"
                                 "DO",
                                 "FIX"
                                 "ME",
                                 "XX"
                                 "X"}) {
    EXPECT_THAT(check_text({"base/a.cpp", "int a;  // " + word + ": b\n"}), ElementsAre(violation(1, "an open end")));
  }
}

TEST(Text, NamesNoPathOfOneMachine) {
  for (const std::string directory : {"work", "root", "home"}) {
    EXPECT_THAT(check_text({"docs/a.md", "see /" + directory + "/x\n"}),
                ElementsAre(violation(1, "a path of one machine")));
    EXPECT_THAT(check_text({"docs/a.md", "see our/" + directory + "/x\n"}), IsEmpty());
  }
}

TEST(Text, LooksAtNoClockThatJumps) {
  for (const std::string clock : {"std::chrono::system_clock::now()", "clock_gettime(CLOCK_REALTIME, &now)",
                                  "gettimeofday(&now, nullptr)", "std::time(nullptr)"}) {
    const std::string line = "const auto now = " + clock + ";\n";
    EXPECT_THAT(check_text({"elastic/etcd/a.cpp", line}), ElementsAre(violation(1, "a clock that jumps")));
    EXPECT_THAT(check_text({"launcher/worker/leave_notice.cpp", line}), IsEmpty());
    EXPECT_THAT(check_text({"tests/base/a_test.cpp", line}), IsEmpty());
  }
  EXPECT_THAT(check_text({"elastic/a.cpp", "const auto now = steady_clock::now() + run_time(0);\n"}), IsEmpty());
}

TEST(Text, OfATestSendsNoSignalToAll) {
  const std::string line = std::string("  ::ki") + "ll(process, SIGKILL);\n";
  for (const std::string path : {"tests/base/a_test.cpp", "bench/a.cpp"}) {
    EXPECT_THAT(check_text({path, line}), ElementsAre(violation(1, "a signal that may go to all")));
  }
  EXPECT_THAT(check_text({"tests/send_signal.h", "#pragma once\n" + line}), IsEmpty());
  EXPECT_THAT(check_text({"launcher/cli/a.cpp", line}), IsEmpty());
  EXPECT_THAT(check_text({"tests/base/a_test.cpp", "void Cluster" + line.substr(2)}), IsEmpty());
}

TEST(Text, OfATestRunsTheTest) {
  for (const std::string word : {"GTEST_"
                                 "SKIP()",
                                 "TEST(A, DIS"
                                 "ABLED_B)"}) {
    EXPECT_THAT(check_text({"tests/base/a_test.cpp", word + "\n"}),
                ElementsAre(violation(1, "a test that does not run")));
  }
}

TEST(Text, OfASourceFitsInFourHundredLines) {
  std::string text;
  for (int line = 0; line < 400; ++line) text += "int a;\n";
  EXPECT_THAT(check_text({"base/a.cpp", text}), IsEmpty());
  EXPECT_THAT(check_text({"base/a.cpp", text + "int b;\n"}), ElementsAre(violation(0, "401 lines")));
}

TEST(Text, OfAHeaderStartsWithPragmaOnce) {
  EXPECT_THAT(check_text({"base/a.h", "int a;\n"}), ElementsAre(violation(0, "#pragma once")));
  EXPECT_THAT(check_text({"base/a.h.in", "int a;\n"}), ElementsAre(violation(0, "#pragma once")));
}

TEST(Text, LivesUnderASnakeCaseName) {
  for (const std::string path : {"base/TrainLoop.cpp", "base/train-loop.cpp", "base/train_loop.cc", "Base/a.cpp"}) {
    EXPECT_THAT(check_text({path, "int a;\n"}), ElementsAre(violation(0, "snake_case"))) << path;
  }
}

}  // namespace
}  // namespace everstep::tidy
