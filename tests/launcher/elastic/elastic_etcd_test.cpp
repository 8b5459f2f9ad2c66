// What the etcd servers of a job may do to it.
#include <thread>

#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/elastic/elastic_job.h"

namespace everstep::launcher {
namespace {

using std::chrono::milliseconds;

class ElasticEtcd : public ElasticJob {
 protected:
  static std::string urls(const elastic::EtcdCluster& cluster) {
    std::string all;
    for (const std::string& url : cluster.endpoints()) all += (all.empty() ? "" : ",") + url;
    return all;
  }
};

TEST_F(ElasticEtcd, MayLoseItsLeaderWithoutANewGeneration) {
  elastic::EtcdCluster cluster(3);
  ASSERT_TRUE(starts(4, {"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1"}));
  const int before = generation();
  const int leader = cluster.leader(0);
  ASSERT_GE(leader, 0);
  cluster.kill(leader);
  ASSERT_TRUE(saves(step() + 100));
  expect_stop();
  EXPECT_EQ(generation(), before);
  expect_proofs();
}

TEST_F(ElasticEtcd, MayBeAwayForAWhile) {
  elastic::EtcdCluster cluster;
  ASSERT_TRUE(starts(4, {"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1"}));
  const int before = generation();
  cluster.kill(0);
  std::this_thread::sleep_for(milliseconds(1500));
  ASSERT_TRUE(goes_on());
  cluster.restart(0);
  ASSERT_TRUE(saves(step() + 100));
  expect_stop();
  EXPECT_EQ(generation(), before);
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
