#include "launcher/worker/outage_clock.h"

#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

constexpr Tick kSecond = kTicksPerSecond;

OutageClock clock_with_limit(int seconds) {
  MembershipOptions options;
  options.outage_limit = std::chrono::seconds(seconds);
  options.lease_ttl = std::chrono::seconds(4);
  return OutageClock(options);
}

TEST(OutageClock, CountsFromTheFirstCallThatFailed) {
  OutageClock clock = clock_with_limit(60);
  EXPECT_FALSE(clock.is_too_long());
  clock.failed(100 * kSecond);
  clock.failed(160 * kSecond - 1);
  EXPECT_FALSE(clock.is_too_long());
  clock.failed(160 * kSecond);
  EXPECT_TRUE(clock.is_too_long());
  EXPECT_EQ(clock.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(clock.error().message, "etcd has not answered for 60 s, which is longer than --etcd-outage-limit");
}

TEST(OutageClock, StartsAnewAfterAnAnswer) {
  OutageClock clock = clock_with_limit(60);
  clock.failed(100 * kSecond);
  clock.answered();
  clock.failed(170 * kSecond);
  EXPECT_FALSE(clock.is_too_long());
}

// A lease is what etcd itself allows for short troubles.
TEST(OutageClock, IsAsPatientAsALease) {
  OutageClock clock = clock_with_limit(0);
  clock.failed(100 * kSecond);
  EXPECT_FALSE(clock.is_too_long());
  clock.failed(104 * kSecond);
  EXPECT_TRUE(clock.is_too_long());
}

TEST(OutageClock, IsLessPatientAtTheEnd) {
  OutageClock clock = clock_with_limit(600);
  clock.failed(100 * kSecond);
  clock.set_at_end(true, 300 * kSecond);
  clock.failed(301 * kSecond);
  EXPECT_FALSE(clock.is_too_long()) << "what happened before the end does not count";
  clock.set_at_end(true, 305 * kSecond);
  clock.failed(300 * kSecond + OutageClock::kPatienceAtEnd);
  EXPECT_TRUE(clock.is_too_long()) << "the end began once";
  EXPECT_EQ(clock.error().message, "etcd has not answered for 210 s");
  clock.set_at_end(false, 311 * kSecond);
  EXPECT_FALSE(clock.is_too_long());
}

TEST(OutageClock, AtTheEndCountsAnOutageThatBeginsLater) {
  OutageClock clock = clock_with_limit(600);
  clock.set_at_end(true, 100 * kSecond);
  clock.failed(200 * kSecond);
  EXPECT_FALSE(clock.is_too_long());
  clock.failed(200 * kSecond + OutageClock::kPatienceAtEnd);
  EXPECT_TRUE(clock.is_too_long());
}

}  // namespace
}  // namespace everstep::launcher
