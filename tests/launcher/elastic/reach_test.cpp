#include "launcher/elastic/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace everstep::launcher {
namespace {

using testing::HasSubstr;

elastic::MemberRecord member(const std::string& host, const std::string& address) {
  elastic::MemberRecord record;
  record.name = "w0";
  record.host = host;
  record.address = address;
  return record;
}

Reach at(const std::string& address, const std::string& etcd = "https://etcd-1:2379") {
  return {{etcd}, "host-b", address};
}

TEST(Reach, RefusesALoopbackAddressWhenPeersAreOnAnotherHost) {
  const Status refused = check_reach(at("127.0.0.1:4711"), {member("host-a", "10.0.0.1:4700")});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().line(), HasSubstr("listens at 127.0.0.1:4711, where w0 on host host-a cannot reach it"));
  EXPECT_THAT(refused.error().line(), HasSubstr("--bind"));
}

TEST(Reach, RefusesPeersOnAnotherHostThatHaveALoopbackAddress) {
  const Status refused = check_reach(at("10.0.0.2:4711"), {member("host-a", "127.0.0.1:4700")});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().line(), HasSubstr("w0 on host host-a listens at 127.0.0.1:4700"));
}

TEST(Reach, IsFineAmongWorkersOfOneHostAndWithRealAddresses) {
  EXPECT_TRUE(check_reach(at("127.0.0.1:4711"), {member("host-b", "127.0.0.1:4700")}));
  EXPECT_TRUE(check_reach(at("10.0.0.2:4711"), {member("host-a", "10.0.0.1:4700")}));
  EXPECT_TRUE(check_reach(at("127.0.0.1:4711"), {}));
}

// Names of hosts may be made up then (--host-name).
TEST(Reach, IsNotDoubtedWhenEtcdIsOnThisHost) {
  for (const char* etcd : {"http://127.0.0.1:2379", "http://localhost:2379", "https://[::1]:2379"}) {
    EXPECT_TRUE(check_reach(at("127.0.0.1:4711", etcd), {member("host-a", "127.0.0.1:4700")})) << etcd;
    EXPECT_FALSE(reach_warning(at("127.0.0.1:4711", etcd))) << etcd;
  }
}

TEST(Reach, WarnsOfALoopbackAddressWhenEtcdIsOnAnotherHost) {
  const auto warning = reach_warning(at("127.0.0.1:4711"));
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("only workers on this host can connect to 127.0.0.1:4711"));
  EXPECT_FALSE(reach_warning(at("10.0.0.2:4711")));
}

}  // namespace
}  // namespace everstep::launcher
