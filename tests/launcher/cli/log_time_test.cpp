#include "launcher/cli/log_time.h"

#include <gmock/gmock.h>

namespace everstep::launcher {
namespace {

std::string text_of(std::int64_t milliseconds) {
  std::array<char, kLogTimeSize> room{};
  return std::string(write_log_time(milliseconds, room));
}

TEST(LogTime, IsTheTimeOfTheDayInUtc) {
  EXPECT_EQ(text_of(0), "time=1970-01-01T00:00:00.000Z ");
  EXPECT_EQ(text_of(951'827'696'789), "time=2000-02-29T12:34:56.789Z ");
  EXPECT_EQ(text_of(1'794'952'799'999), "time=2026-11-17T21:59:59.999Z ");
  EXPECT_EQ(text_of(4'102'444'800'000), "time=2100-01-01T00:00:00.000Z ");
}

TEST(LogTime, IsThatOfNow) {
  const std::int64_t before = wall_clock_ms();
  const std::string now = log_time();
  EXPECT_GE(now, text_of(before));
  EXPECT_LE(now, text_of(wall_clock_ms()));
}

}  // namespace
}  // namespace everstep::launcher
