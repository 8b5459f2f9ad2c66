#include "trainer/socket/ip_address.h"

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

TEST(IpAddresses, AreReadFromDigitsAlone) {
  for (const char* text : {"10.0.0.7", "0.0.0.0", "::", "fd00::7", "::ffff:10.0.0.7"})
    EXPECT_TRUE(parse_ip(text)) << text;
  for (const char* text : {"", "localhost", "10.0.0", "10.0.0.7:4711", "[::1]", "fe80::1%eth0", " ::1"}) {
    EXPECT_FALSE(parse_ip(text)) << text;
  }
}

TEST(IpAddresses, OfAWholeHostAreKnownHoweverTheyAreWritten) {
  for (const char* text : {"0.0.0.0", "::", "::0", "0::", "0:0:0:0:0:0:0:0"})
    EXPECT_TRUE(is_any(*parse_ip(text))) << text;
  for (const char* text : {"0.0.0.1", "127.0.0.1", "::1", "fd00::"}) EXPECT_FALSE(is_any(*parse_ip(text))) << text;
}

}  // namespace
}  // namespace everstep::trainer
