#include <atomic>

#include <gmock/gmock.h>

#include "tests/elastic/etcd/certificates.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/elastic/kv_contract.h"

namespace everstep::elastic {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr auto kLong = seconds(20);
const Txn kRead{{}, {get("/a")}};
const Txn kWrite{{}, {put("/a", "1")}};

milliseconds time_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

// The code of what went wrong; kInternal if nothing did.
ErrorCode failure(const Result<TxnReply>& reply) { return reply ? ErrorCode::kInternal : reply.error().code; }

std::unique_ptr<KvStore> client_of(std::vector<std::string> endpoints) {
  auto store = connect_etcd({.endpoints = std::move(endpoints)});
  EVERSTEP_CHECK(store.ok(), store.error().line());
  return std::move(*store);
}

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
  EXPECT_EQ(failure(store->transact(kRead, milliseconds(300))), ErrorCode::kUnavailable);
  cluster.restart(0);
  EXPECT_TRUE(store->transact(kRead, kLong).ok());
  EXPECT_TRUE(store->renew(*lease, kLong).ok());
  EXPECT_TRUE(heard.waits_for_gaps(2));
}

TEST(EtcdFaults, OneOfThreeServersMayDieOrFreeze) {
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
  EXPECT_TRUE(store->transact(kWrite, kLong).ok());
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

TEST(EtcdFaults, WithoutAMajorityNothingIsExecuted) {
  EtcdCluster cluster(3);
  const auto store = cluster.connect();
  ASSERT_TRUE(store->transact(kWrite, kLong).ok());
  cluster.kill(1);
  cluster.kill(2);
  const auto took = time_of([&] { EXPECT_FALSE(store->transact(kRead, seconds(2)).ok()); });
  EXPECT_LT(took, seconds(3));
  cluster.restart(1);
  EXPECT_TRUE(store->transact(kRead, kLong).ok());
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

TEST(EtcdFaults, AValueThatIsTooLargeIsRefused) {
  EtcdCluster cluster;
  const auto store = cluster.connect();
  for (const std::size_t size : {std::size_t{1'600'000}, std::size_t{8'000'000}}) {
    EXPECT_EQ(failure(store->transact({{}, {put("/a", std::string(size, 'x'))}}, kLong)), ErrorCode::kInvalidArgument);
  }
  EXPECT_TRUE(store->transact(kWrite, kLong).ok());
}

TEST(EtcdTls, CertificatesOfOneAuthorityAreTaken) {
  const Certificates certificates;
  const ServerCertificates server = certificates.make("server", 1);
  EtcdCluster cluster(1, server);
  const auto store = connect_etcd(Certificates::options_with(certificates.make("client", 1), cluster));
  ASSERT_TRUE(store.ok()) << store.error();
  EXPECT_TRUE((*store)->transact(kWrite, kLong).ok());
  const auto lease = (*store)->grant(seconds(60), kLong);
  ASSERT_TRUE(lease.ok()) << lease.error();
  EXPECT_TRUE((*store)->renew(*lease, kLong).ok());
}

TEST(EtcdTls, AnExpiredOrForeignOrMissingCertificateIsOneClearError) {
  const Certificates certificates;
  const Certificates others;
  const ServerCertificates server = certificates.make("server", 1);
  EtcdCluster cluster(1, server);
  EtcdOptions nothing_to_show = Certificates::options_with(server, cluster);
  nothing_to_show.certificate.clear();
  nothing_to_show.key.clear();
  for (const EtcdOptions& options : {Certificates::options_with(certificates.make("expired", -1), cluster),
                                     Certificates::options_with(others.make("foreign", 1), cluster), nothing_to_show}) {
    const auto store = connect_etcd(options);
    ASSERT_TRUE(store.ok()) << store.error();
    const auto reply = (*store)->transact(kRead, seconds(2));
    ASSERT_FALSE(reply.ok());
    EXPECT_THAT(reply.error().line(), HasSubstr("certificate")) << reply.error();
    EXPECT_THAT(reply.error().line(), HasSubstr(cluster.endpoint(0)));
  }
}

TEST(EtcdOptions, ThatMakeNoSenseAreRefused) {
  const auto refusal = [](const EtcdOptions& options) {
    const auto store = connect_etcd(options);
    return store ? std::string("taken") : store.error().line();
  };
  EXPECT_EQ(refusal({.endpoints = {"http://127.0.0.1:2379"}}), "taken");
  EXPECT_EQ(refusal({.endpoints = {"http://localhost:2379", "http://[::1]:2379/"}}), "taken");
  EXPECT_THAT(refusal({.endpoints = {"http://etcd.example:2379"}}), HasSubstr("plain text"));
  EXPECT_THAT(refusal({.endpoints = {"http://127.evil.example:2379"}}), HasSubstr("plain text"));
  EXPECT_EQ(refusal({.endpoints = {"http://192.0.2.1:2379"}, .allow_plain_text = true}), "taken");
  EXPECT_THAT(refusal({.endpoints = {"https://192.0.2.1:2379"}}), HasSubstr("authority"));
  EXPECT_EQ(refusal({.endpoints = {"https://192.0.2.1:2379"}, .ca = "PEM"}), "taken");
  EXPECT_THAT(refusal({.endpoints = {"https://192.0.2.1:2379"}, .ca = "PEM", .key = "PEM"}), HasSubstr("only one"));
  EXPECT_THAT(refusal({.endpoints = {}}), HasSubstr("no etcd endpoint"));
  for (const char* url : {"127.0.0.1:2379", "http://127.0.0.1", "http://:1", "http://a:0", "http://a:70000",
                          "ftp://a:1", "http://a@127.0.0.1:1", "http://::1:1"}) {
    EXPECT_THAT(refusal({.endpoints = {url}}), HasSubstr(url));
  }
}

}  // namespace
}  // namespace everstep::elastic
