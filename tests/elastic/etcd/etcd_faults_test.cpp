#include <gmock/gmock.h>

#include "launcher/supervise/etcd_process.h"
#include "tests/elastic/etcd/calls.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/elastic/heard.h"

namespace everstep::elastic {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

TEST(EtcdFaults, AServerThatStopsInACallLeavesTheOutcomeOpen) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  cluster.freeze(0);
  const auto took = time_of([&] {
    EXPECT_EQ(failure(store->transact({{}, {put("/b", "1")}}, milliseconds(800))), ErrorCode::kDeadlineExceeded);
  });
  EXPECT_LT(took, milliseconds(1600));
  cluster.thaw(0);
  EXPECT_TRUE(becomes_true([&] { return store->transact({{has_value("/a", "1")}, {get("/b")}}, seconds(1)).ok(); }));
}

TEST(EtcdFaults, EveryCallEndsAtItsDeadline) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  const auto lease = store->grant(seconds(60), kLong);
  ASSERT_TRUE(lease.ok()) << lease.error();
  cluster.freeze(0);
  constexpr auto kDeadline = milliseconds(300);
  const std::vector<std::function<ErrorCode()>> calls = {
      [&] { return failure(store->transact(kRead, kDeadline)); },
      [&] { return failure(store->transact(kWrite, kDeadline)); },
      [&] { return failure(store->grant(seconds(5), kDeadline)); },
      [&] { return failure(store->renew(*lease, kDeadline)); },
      [&] { return failure(store->revoke(*lease, kDeadline)); },
  };
  for (const auto& call : calls) {
    const auto took =
        time_of([&] { EXPECT_THAT(call(), AnyOf(ErrorCode::kDeadlineExceeded, ErrorCode::kUnavailable)); });
    EXPECT_GE(took, milliseconds(200));
    EXPECT_LT(took, milliseconds(900));
  }
}

TEST(EtcdFaults, AServerThatIsNotThereWasNotSentAnything) {
  const auto store = client_of({"http://127.0.0.1:" + std::to_string(launcher::unused_port())});
  const auto reply = store->transact(kWrite, milliseconds(500));
  EXPECT_EQ(failure(reply), ErrorCode::kUnavailable);
  EXPECT_THAT(reply.error().message, HasSubstr("http://127.0.0.1:"));
  EXPECT_EQ(store->grant(seconds(5), milliseconds(100)).error().code, ErrorCode::kUnavailable);
}

TEST(EtcdFaults, AFrozenServerThatWasNeverConnectedWasNotSentAnything) {
  EtcdCluster cluster;
  cluster.freeze(0);
  EXPECT_EQ(failure(cluster.connect()->transact(kWrite, milliseconds(500))), ErrorCode::kUnavailable);
}

TEST(EtcdFaults, AClientGoesWithinASecondThoughTheServerIsFrozen) {
  EtcdCluster cluster;
  auto store = cluster.connect();
  Heard heard;
  auto watch = store->watch("/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  cluster.freeze(0);
  EXPECT_FALSE(store->transact(kWrite, milliseconds(200)).ok());
  EXPECT_LT(time_of([&] {
              watch.reset();
              store.reset();
            }),
            seconds(1));
}

TEST(EtcdFaults, ARestartedServerIsFoundAgainByCallsLeasesAndWatches) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  Heard heard;
  const auto watch = store->watch("/", heard.sink());
  ASSERT_TRUE(heard.waits_for_gaps(1));
  const auto lease = store->grant(seconds(60), kLong);
  ASSERT_TRUE(lease.ok());
  cluster.kill(0);
  EXPECT_FALSE(store->transact(kRead, milliseconds(300)).ok());
  cluster.restart(0);
  EXPECT_TRUE(store->transact(kRead, kLong).ok());
  EXPECT_TRUE(store->renew(*lease, kLong).ok());
  EXPECT_TRUE(heard.waits_for_gaps(2));
}

TEST(EtcdFaults, AnotherClusterIsNotTakenForTheFirst) {
  EtcdCluster first;
  EtcdCluster second;
  const auto store = client_of({first.endpoint(0), second.endpoint(0)});
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  first.kill(0);
  auto reply = store->transact(kRead, kLong);
  EXPECT_EQ(failure(reply), ErrorCode::kDataLoss);
  EXPECT_THAT(reply.error().message, HasSubstr(second.endpoint(0)));
}

// Its name is made of its URLs, so that only the revision tells that it starts from nothing.
TEST(EtcdFaults, AWipedServerIsNotTakenForTheOldOne) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  cluster.wipe(0);
  cluster.restart(0);
  cluster.wait_until_healthy();
  const auto reply = store->transact(kRead, kLong);
  EXPECT_EQ(failure(reply), ErrorCode::kDataLoss);
  EXPECT_THAT(reply.error().message, HasSubstr("went back in time"));
  EXPECT_EQ(failure(store->transact(kWrite, kLong)), ErrorCode::kDataLoss);
  EXPECT_EQ(store->grant(seconds(5), kLong).error().code, ErrorCode::kDataLoss);
}

TEST(EtcdFaults, AServerThatWasRestoredFromAnOldCopyIsNotTakenForTheOldOne) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  cluster.keep_copy(0);
  cluster.restart(0);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(becomes_true([&] { return store->transact(kWrite, kLong).ok(); }));
  }
  cluster.restore_copy(0);
  cluster.restart(0);
  cluster.wait_until_healthy();
  EXPECT_EQ(failure(store->transact(kRead, kLong)), ErrorCode::kDataLoss);
  EXPECT_EQ(failure(store->transact(kWrite, kLong)), ErrorCode::kDataLoss);
}

TEST(EtcdFaults, AServerThatIsOutOfSpaceSaysSoAndGoesOnWhenThereIsRoom) {
  EtcdCluster cluster(1, std::nullopt, {"--quota-backend-bytes=2000000"});
  const auto store = cluster.connect();
  const auto lease = store->grant(seconds(60), kLong);
  ASSERT_TRUE(lease.ok()) << lease.error();
  const Txn large{{}, {put("/a", std::string(300'000, 'x'))}};
  // etcd measures its file ten times a second, and may take any number of writes in between.
  auto reply = store->transact(large, kLong);
  ASSERT_TRUE(becomes_true([&] {
    reply = store->transact(large, kLong);
    return !reply.ok();
  }));
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(reply.error().line(), HasSubstr("out of space"));
  EXPECT_THAT(reply.error().line(), HasSubstr("etcdctl alarm disarm"));
  EXPECT_EQ(failure(store->grant(seconds(60), kLong)), ErrorCode::kUnavailable);
  EXPECT_TRUE(store->transact(kRead, kLong).ok());
  EXPECT_TRUE(store->renew(*lease, kLong).ok());
  EXPECT_TRUE(store->transact({{}, {remove("/a")}}, kLong).ok());
  cluster.make_room(0);
  EXPECT_TRUE(store->transact(kWrite, kLong).ok());
}

TEST(EtcdFaults, AValueThatIsTooLargeIsRefused) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  for (const std::size_t size : {std::size_t{1'600'000}, std::size_t{8'000'000}}) {
    EXPECT_EQ(failure(store->transact({{}, {put("/a", std::string(size, 'x'))}}, kLong)), ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(store->transact(kWrite, kLong).ok());
}

}  // namespace
}  // namespace everstep::elastic
