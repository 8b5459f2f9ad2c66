// What the etcd servers of a job may do to it.
#include <thread>

#include "elastic/keys.h"
#include "elastic/records.h"
#include "launcher/rehearse/chaos/tcp_proxy.h"
#include "tests/elastic/etcd_cluster.h"
#include "tests/launcher/supervise/elastic_job.h"

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

// Longer than any lease: training goes on all the same, up to the limit, and nothing of it counts.
TEST_F(ElasticEtcd, ThatIsAwayForLongerThanTheLimitEndsTheJob) {
  elastic::EtcdCluster cluster;
  const Words options{"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1", "--lease-ttl=2",
                      "--etcd-outage-limit=10"};
  ASSERT_TRUE(starts(4, options));
  cluster.freeze(0);
  std::this_thread::sleep_for(milliseconds(3000));
  const int saved = checkpoints();
  EXPECT_TRUE(goes_on(5)) << "after the lease";
  const Ended ended = expect_end(69);
  EXPECT_NE(ended.log.find("etcd has not answered for"), std::string::npos) << ended.log;
  EXPECT_EQ(checkpoints(), saved);
  expect_proofs();
  cluster.thaw(0);
  start(options, "second");
  ASSERT_TRUE(trains_with(4));
  ASSERT_TRUE(goes_on());
  expect_stop();
  expect_proofs();
}

// A job that cannot be told to stop goes on for a while; whoever wants its end at once is told how.
TEST_F(ElasticEtcd, ThatIsGoneMakesAStopWaitAndASecondSignalEndsIt) {
  elastic::EtcdCluster cluster;
  ASSERT_TRUE(starts(4, {"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1"}));
  cluster.kill(0);
  train().signal(SIGINT);
  ASSERT_TRUE(says("event=stop_waits"));
  EXPECT_TRUE(says("a second signal ends it at once"));
  expect_stop();
}

TEST_F(ElasticEtcd, WithoutSpaceHoldsCommitsUpUntilThereIsRoom) {
  elastic::EtcdCluster cluster(1, std::nullopt, {"--quota-backend-bytes=4000000"});
  ASSERT_TRUE(starts(4, {"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1"}));
  const int before = generation();
  const auto store = cluster.connect();
  const elastic::Txn large{{}, {elastic::put("/other", std::string(500'000, 'x'))}};
  while (store->transact(large, milliseconds(5000))) {
  }
  ASSERT_TRUE(says("event=commit_waits reason=\"etcd at " + cluster.endpoint(0) + " is out of space"));
  EXPECT_TRUE(says("etcdctl alarm disarm"));
  const int saved = checkpoints();
  ASSERT_TRUE(goes_on(100));
  EXPECT_EQ(checkpoints(), saved);
  ASSERT_TRUE(store->transact({{}, {elastic::remove("/other")}}, milliseconds(5000)).ok());
  cluster.make_room(0);
  ASSERT_TRUE(saves(step() + 1));
  expect_stop();
  EXPECT_EQ(generation(), before);
  expect_proofs();
}

TEST_F(ElasticEtcd, ThatTakesALeaseAwayGetsANewMember) {
  elastic::EtcdCluster cluster;
  ASSERT_TRUE(starts(4, {"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1,3=3x1"}));
  const int before = generation();
  const elastic::Keys keys("job");
  const auto store = cluster.connect();
  const auto members = store->transact({{}, {elastic::list(keys.members())}}, milliseconds(5000));
  ASSERT_TRUE(members.ok());
  ASSERT_TRUE(store->revoke(members->reads.front().back().lease, milliseconds(5000)).ok());
  ASSERT_TRUE(says("event=rejoining reason=\"evicted: its member key is gone\""));
  ASSERT_TRUE(trains_with(4, before));
  ASSERT_TRUE(goes_on());
  expect_stop();
  EXPECT_LE(generation(), before + 2) << "without it, and with it again, unless it was quick";
  expect_proofs();
}

// The etcd of the run answers again, but knows nothing: nobody may take it for the one that was there before.
TEST_F(ElasticEtcd, ThatWasWipedEndsTheJobAndResumeGoesOn) {
  elastic::EtcdCluster cluster;
  const Words options{"--etcd=" + urls(cluster), "--job=job", "--shapes=4=4x1"};
  ASSERT_TRUE(starts(4, options));
  cluster.wipe(0);
  cluster.restart(0);
  const Ended ended = expect_end(65);
  EXPECT_NE(ended.log.find("everstep resume"), std::string::npos) << ended.log;
  Words again = options;
  again.insert(again.end(), {"--resume", "--steps=" + std::to_string(step() + 50)});
  start(again, "second");
  expect_end();
  expect_proofs();
}

// The first worker leads, and it alone reaches etcd over a line that is cut.
TEST_F(ElasticEtcd, MayBeOutOfTheLeadersReach) {
  elastic::EtcdCluster cluster;
  const std::string url = cluster.endpoint(0);
  const std::string port = url.substr(url.rfind(':') + 1);
  auto line = chaos::TcpProxy::start(std::stoi(port));
  ASSERT_TRUE(line.ok()) << line.error().line();
  const std::string over_the_line = std::string("http://") + chaos::TcpProxy::kAddress + ":" + port;
  ASSERT_TRUE(starts(
      1, {"--etcd=" + over_the_line, "--job=job", "--workers=1", "--lease-ttl=2", "--shapes=1=1x1,2=2x1,3=3x1"}));
  RunningProgram& second = add_worker("second", {"--etcd=" + url});
  RunningProgram& third = add_worker("third", {"--etcd=" + url});
  ASSERT_TRUE(trains_with(3));
  ASSERT_EQ(leader(), 0);
  const int before = generation();
  (*line)->set(chaos::TcpProxy::Mode::kHold);
  // The others have no supervisor that would tell of generations.
  const auto store = cluster.connect();
  const auto train_after = [&](std::size_t workers, std::int64_t last) {
    const auto reply = store->transact({{}, {elastic::get(elastic::Keys("job").generation())}}, milliseconds(1000));
    const auto record = reply && !reply->reads[0].empty() ? elastic::parse_generation(reply->reads[0].front().value)
                                                          : elastic::parse_generation("");
    return record && record->roster.attempt.generation.value > last && record->roster.plan.workers.size() == workers;
  };
  ASSERT_TRUE(becomes("generation of the other two", [&] { return train_after(2, before); }));
  (*line)->set(chaos::TcpProxy::Mode::kPass);
  ASSERT_TRUE(becomes("generation with all", [&] { return train_after(3, before + 1); }));
  ASSERT_TRUE(goes_on());
  expect_stop();
  EXPECT_EQ(second.wait(std::chrono::seconds(0)).exit_code, 75);
  EXPECT_EQ(third.wait(std::chrono::seconds(0)).exit_code, 75);
  expect_proofs();
}

}  // namespace
}  // namespace everstep::launcher
