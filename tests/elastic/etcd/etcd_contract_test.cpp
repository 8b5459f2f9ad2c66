#include <map>

#include "tests/elastic/etcd_cluster.h"
#include "tests/elastic/kv_contract.h"

namespace everstep::elastic {
namespace {

// A cluster that all tests of its size share, because starting one takes a second; each test finds it empty.
EtcdCluster& shared_cluster(int servers) {
  static std::map<int, std::unique_ptr<EtcdCluster>> clusters;
  auto& cluster = clusters[servers];
  if (!cluster) cluster = std::make_unique<EtcdCluster>(servers);
  return *cluster;
}

class EtcdSubject final : public Subject {
 public:
  explicit EtcdSubject(int servers) : cluster_(shared_cluster(servers)), store_(cluster_.connect()) {
    const auto emptied = store_->transact({{}, {remove_prefix("")}}, std::chrono::seconds(20));
    EVERSTEP_CHECK(emptied.ok(), emptied.error().line());
  }

  KvStore& store() override { return *store_; }

  // The lease must not be renewed to find out: its key is looked at.
  void let_expire(LeaseId lease) override {
    const auto is_gone = [&] {
      const auto reply = store_->transact({{}, {list("")}}, std::chrono::seconds(5));
      if (!reply) return false;
      const auto& items = reply->reads.at(0);
      return std::none_of(items.begin(), items.end(), [&](const KeyValue& item) { return item.lease == lease; });
    };
    EXPECT_TRUE(becomes_true(is_gone, std::chrono::seconds(30)));
  }

  void interrupt_and_compact() override {
    for (int server = 0; server < cluster_.size(); ++server) cluster_.kill(server);
    for (int server = 0; server < cluster_.size(); ++server) cluster_.restart(server);
    cluster_.wait_until_healthy();
    cluster_.compact(0);
  }

 private:
  EtcdCluster& cluster_;
  std::unique_ptr<KvStore> store_;
};

INSTANTIATE_TEST_SUITE_P(OneServer, KvContract,
                         testing::Values(SubjectMaker{"one server", [] { return std::make_unique<EtcdSubject>(1); }}));
INSTANTIATE_TEST_SUITE_P(ThreeServers, KvContract,
                         testing::Values(SubjectMaker{"three servers",
                                                      [] { return std::make_unique<EtcdSubject>(3); }}));

}  // namespace
}  // namespace everstep::elastic
