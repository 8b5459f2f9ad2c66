#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "tests/elastic/etcd/calls.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/elastic/heard.h"

namespace everstep::elastic {
namespace {

TEST(EtcdServers, OneOfThreeServersMayDieOrFreeze) {
  EtcdCluster cluster(3);
  const auto store = cluster.connect();
  Heard heard;
  const auto watch = store->watch("/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  const auto lease = store->grant(seconds(60), kLong);
  const int leader = cluster.leader(0);
  ASSERT_GE(leader, 0);
  // A client starts with the first server: the one that it uses goes, be it the leader or not.
  cluster.freeze(0);
  EXPECT_LT(time_of([&] { EXPECT_TRUE(store->transact(kRead, kLong).ok()); }), seconds(5));
  EXPECT_TRUE(becomes_true([&] { return store->transact(kWrite, seconds(1)).ok(); }));
  cluster.thaw(0);
  cluster.wait_until_healthy();
  cluster.kill(leader);
  EXPECT_TRUE(store->transact(kRead, kLong).ok());
  EXPECT_TRUE(store->renew(*lease, kLong).ok());
  const int gaps = heard.gaps_now();
  EXPECT_GE(gaps, 1);
  ASSERT_TRUE(becomes_true([&] { return store->transact({{}, {put("/late", "1")}}, seconds(2)).ok(); }));
  EXPECT_TRUE(heard.waits_for(
      [&](const Heard& it) { return it.gaps > gaps || (!it.events.empty() && it.events.back().item.key == "/late"); }));
}

TEST(EtcdServers, WithoutAMajorityNoCallSucceeds) {
  EtcdCluster cluster(3);
  const auto store = cluster.connect();
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  cluster.kill(1);
  cluster.kill(2);
  const auto took = time_of([&] { EXPECT_FALSE(store->transact(kRead, seconds(2)).ok()); });
  EXPECT_LT(took, seconds(3));
  EXPECT_FALSE(store->transact(kWrite, seconds(1)).ok());
  EXPECT_FALSE(store->grant(seconds(5), seconds(1)).ok());
  cluster.restart(1);
  EXPECT_TRUE(store->transact(kRead, kLong).ok());
}

// Not the leader, so that the others need no election: what is measured is the client.
TEST(EtcdServers, AFrozenOneIsLeftWithinHalfASecond) {
  EtcdCluster cluster(3);
  const int leader = cluster.leader(0);
  ASSERT_GE(leader, 0);
  const int follower = (leader + 1) % 3;
  const auto store = client_of({cluster.endpoint(follower), cluster.endpoint(leader)});
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  cluster.freeze(follower);
  const auto took = time_of([&] { EXPECT_TRUE(store->transact(kRead, kLong).ok()); });
  EXPECT_GE(took, milliseconds(400));
  EXPECT_LT(took, milliseconds(900));
  EXPECT_TRUE(store->transact(kWrite, kLong).ok()) << "it was left: of a frozen server the outcome would be open";
}

TEST(EtcdServers, TheLeaderMayBeKilled) {
  EtcdCluster cluster(3);
  const auto store = cluster.connect();
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  const int leader = cluster.leader(0);
  ASSERT_GE(leader, 0);
  cluster.kill(leader);
  const auto stall =
      time_of([&] { ASSERT_TRUE(becomes_true([&] { return store->transact(kWrite, seconds(1)).ok(); })); });
  RecordProperty("stall_ms", static_cast<int>(stall.count()));
  // An election begins after one to two seconds without a leader.
  EXPECT_LT(stall, seconds(4));
}

TEST(EtcdServers, MayBeRestartedOneAfterTheOtherWithoutALeaseLost) {
  EtcdCluster cluster(3);
  const auto store = cluster.connect();
  const auto lease = store->grant(seconds(5), kLong);
  ASSERT_TRUE(lease.ok()) << lease.error();
  const auto with_lease = store->transact({{}, {put("/member", "1", *lease)}}, kLong);
  ASSERT_TRUE(with_lease.ok());
  std::atomic<bool> is_over = false;
  std::atomic<int> losses = 0;
  std::thread keeper([&] {
    while (!is_over) {
      if (failure(store->renew(*lease, seconds(1))) == ErrorCode::kNotFound) ++losses;
      std::this_thread::sleep_for(milliseconds(200));
    }
  });
  for (int server = 0; server < cluster.size(); ++server) {
    cluster.restart(server);
    cluster.wait_until_healthy();
  }
  is_over = true;
  keeper.join();
  EXPECT_EQ(losses, 0);
  const auto reply = store->transact({{created_at("/member", with_lease->revision)}, {}}, kLong);
  ASSERT_TRUE(reply.ok()) << reply.error();
  EXPECT_TRUE(reply->succeeded) << "the key of the lease has been there all the time";
}

// The server of the watch lives on without a leader. It would keep the watch and say nothing, had it not been asked to
// end it then.
TEST(EtcdServers, AWatchLeavesAServerThatLostItsLeader) {
  EtcdCluster cluster(3);
  const auto store = cluster.connect();
  Heard heard;
  const auto watch = store->watch("/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  cluster.kill(1);
  cluster.kill(2);
  std::this_thread::sleep_for(seconds(5));
  const int gaps = heard.gaps_now();
  cluster.restart(1);
  EXPECT_TRUE(heard.waits_for_gaps(gaps + 1));
  ASSERT_TRUE(becomes_true([&] { return store->transact(kWrite, seconds(2)).ok(); }));
  EXPECT_TRUE(heard.waits_for([](const Heard& it) { return !it.events.empty(); }));
}

}  // namespace
}  // namespace everstep::elastic
