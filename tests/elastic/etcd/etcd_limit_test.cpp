#include <gmock/gmock.h>

#include "tests/elastic/etcd/calls.h"
#include "tests/elastic/etcd_cluster.h"

namespace everstep::elastic {
namespace {

// gRPC's own limit is 4 MiB.
TEST(EtcdLimit, AnAnswerMayHave64MiB) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  const std::string value(1 << 20, 'x');
  const auto fill = [&](const std::string& prefix, int count) {
    for (int at = 0; at < count; ++at) {
      ASSERT_TRUE(store->transact({{}, {put(prefix + std::to_string(at), value)}}, kLong).ok());
    }
  };
  fill("/few/", 8);
  const auto few = store->transact({{}, {list("/few/")}}, kLong);
  ASSERT_TRUE(few.ok()) << few.error();
  EXPECT_EQ(few->reads.at(0).size(), 8U);
  fill("/many/", 64);
  const auto many = store->transact({{}, {list("/")}}, kLong);
  ASSERT_EQ(failure(many), ErrorCode::kInvalidArgument);
  EXPECT_THAT(many.error().message, testing::HasSubstr("larger than max"));
}

}  // namespace
}  // namespace everstep::elastic
