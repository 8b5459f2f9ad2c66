#include "launcher/cli/long_work.h"

#include <csignal>
#include <sstream>

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

TEST(LongWork, SaysHowFarItIs) {
  EXPECT_EQ(size_text(734), "734 B");
  EXPECT_EQ(size_text(12800), "12.5 KiB");
  EXPECT_EQ(size_text(std::uint64_t{3} << 50), "3072.0 TiB");
  EXPECT_EQ(work_text("verifying", 50 << 20, 100 << 20, 2.0),
            "verifying  50 %  50.0 MiB of 100.0 MiB  25.0 MiB/s  2s left");
  EXPECT_EQ(work_text("verifying", 0, 0, 0), "verifying  100 %  0 B of 0 B");
}

TEST(LongWork, ShowsALineOnATerminalOnlyAndTakesItAway) {
  std::ostringstream out;
  std::ostringstream log;
  Streams streams{out, log, 40};
  {
    ProgressLine line(streams);
    line.show(std::string(100, 'x'));
    EXPECT_EQ(log.str(), "\r\x1b[K" + std::string(39, 'x'));
  }
  EXPECT_TRUE(log.str().ends_with("\r\x1b[K"));
  log.str("");
  Streams file{out, log, 0};
  ProgressLine(file).show("x");
  EXPECT_EQ(log.str(), "");
}

TEST(LongWork, AskedToStopItSaysSo) {
  std::ostringstream out;
  Streams streams{out, out};
  LongWork work(streams, "importing", 10);
  EXPECT_TRUE(work.advance_to(5));
  ASSERT_EQ(::raise(SIGTERM), 0);
  EXPECT_FALSE(work.advance_to(6));
  EXPECT_EQ(work.stopped_error().line(), "importing was stopped by SIGTERM");
}

}  // namespace
}  // namespace everstep::launcher
