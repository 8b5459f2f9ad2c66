#include "launcher/worker/reach.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/worker/worker_wire.h"
#include "tests/elastic/fake_kv_store.h"
#include "tests/launcher/status/hand_written_job.h"
#include "tests/temporary_directory.h"

namespace everstep::launcher {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kMine = "unix=boot-b/run/process-1.sock";
constexpr const char* kNeighbour = "unix=boot-b/run/process-2.sock";
constexpr const char* kFar = "unix=boot-a/run/process-2.sock";

elastic::MemberRecord member(const std::string& host, const std::string& address) {
  elastic::MemberRecord record;
  record.name = "w0";
  record.host = host;
  record.address = address;
  return record;
}

Reach at(const std::string& address, const std::string& etcd = "https://etcd-1:2379") {
  return {{etcd}, "host-b", trainer::parse_peer_address(address).value(), [](const std::string&) { return true; }};
}

Reach in_a_container(const std::string& address) {
  Reach self = at(address);
  self.can_open = [](const std::string&) { return false; };
  return self;
}

std::string refusal(const Reach& self, const elastic::MemberRecord& other) {
  const auto obstacle = find_obstacle(self, {other});
  return obstacle ? obstacle->error.line() : "none";
}

TEST(Reach, RefusesALoopbackAddressWhenPeersAreOnAnotherHost) {
  const auto obstacle = find_obstacle(at("127.0.0.1:4711"), {member("host-a", "10.0.0.1:4700")});
  ASSERT_TRUE(obstacle);
  EXPECT_EQ(obstacle->error.code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(obstacle->may_vanish);
  EXPECT_THAT(obstacle->error.line(), HasSubstr("listens at 127.0.0.1, where w0 on host host-a cannot reach it"));
  EXPECT_THAT(obstacle->error.line(), HasSubstr("--bind"));
  EXPECT_THAT(refusal(at("[::1]:4711"), member("host-a", "[fd00::1]:4700")), HasSubstr("listens at ::1, where"));
}

TEST(Reach, RefusesPeersOnAnotherHostThatHaveALoopbackAddress) {
  EXPECT_THAT(refusal(at("10.0.0.2:4711"), member("host-a", "127.0.0.1:4700")),
              HasSubstr("w0 on host host-a listens at 127.0.0.1:4700"));
}

TEST(Reach, IsFineAmongWorkersOfOneHostAndWithRealAddresses) {
  EXPECT_EQ(refusal(at("127.0.0.1:4711"), member("host-b", "127.0.0.1:4700")), "none");
  EXPECT_EQ(refusal(at("10.0.0.2:4711"), member("host-a", "10.0.0.1:4700")), "none");
  EXPECT_EQ(refusal(at("[fd00::2]:4711"), member("host-a", "10.0.0.1:4700")), "none");
  EXPECT_EQ(refusal(at(kMine), member("host-a", kNeighbour)), "none") << "whatever hosts are called";
  EXPECT_FALSE(find_obstacle(at("127.0.0.1:4711"), {}));
}

// Names of hosts may be made up then (--host-name).
TEST(Reach, OfPortsIsNotDoubtedWhenEtcdIsOnThisHost) {
  for (const char* etcd : {"http://127.0.0.1:2379", "http://localhost:2379", "https://[::1]:2379"}) {
    EXPECT_EQ(refusal(at("127.0.0.1:4711", etcd), member("host-a", "127.0.0.1:4700")), "none") << etcd;
    EXPECT_FALSE(reach_warning(at("127.0.0.1:4711", etcd))) << etcd;
    EXPECT_FALSE(reach_warning(at(kMine, etcd))) << etcd;
  }
}

TEST(Reach, BetweenHostsNeedsASecret) {
  const auto obstacle = find_obstacle(at(kMine, "http://127.0.0.1:2379"), {member("host-a", kFar)});
  ASSERT_TRUE(obstacle);
  EXPECT_FALSE(obstacle->may_vanish);
  EXPECT_THAT(obstacle->error.line(),
              AllOf(HasSubstr("this worker and w0 on host host-a cannot connect"),
                    HasSubstr("(umask 077 && openssl rand -hex 32 > secret), then --secret-file=secret")));
}

// It may be dead, and its socket with it: then it soon is no member any more.
TEST(Reach, OfAMemberWhoseSocketIsNotThereMayBeNeededNoMore) {
  const auto obstacle = find_obstacle(in_a_container(kMine), {member("host-b", kNeighbour)});
  ASSERT_TRUE(obstacle);
  EXPECT_TRUE(obstacle->may_vanish);
  EXPECT_THAT(obstacle->error.line(), AllOf(HasSubstr("cannot open the socket of w0"), HasSubstr("--secret-file")));
  const auto for_ever = find_obstacle(in_a_container(kMine), {member("host-a", kFar), member("host-b", kNeighbour)});
  ASSERT_TRUE(for_ever);
  EXPECT_FALSE(for_ever->may_vanish) << "the other one stays";
}

TEST(Reach, BetweenContainersOfOneHostTakesThePorts) {
  const std::string own = std::string("10.0.0.2:4711 ") + kMine;
  EXPECT_EQ(refusal(in_a_container(own), member("host-a", std::string("10.0.0.1:4700 ") + kNeighbour)), "none");
  EXPECT_THAT(refusal(in_a_container(own), member("host-a", std::string("127.0.0.1:4700 ") + kNeighbour)),
              HasSubstr("listens at 127.0.0.1:4700"));
  EXPECT_EQ(refusal(at(own), member("host-a", std::string("127.0.0.1:4700 ") + kNeighbour)), "none");
}

TEST(Reach, WarnsOfALoopbackAddressWhenEtcdIsOnAnotherHost) {
  const auto warning = reach_warning(at("127.0.0.1:4711"));
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("only workers on this host can connect to 127.0.0.1, but"));
  EXPECT_FALSE(reach_warning(at("10.0.0.2:4711")));
}

TEST(Reach, WarnsOfAJobWithoutASecretWhenEtcdIsOnAnotherHost) {
  const auto warning = reach_warning(at(kMine));
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, AllOf(HasSubstr("only workers on this host can connect"), HasSubstr("openssl rand")));
}

// Who died is no member any more when its lease runs out.
TEST(Reach, IsFineOnceAMemberThatDiedIsGone) {
  elastic::FakeKvStore store;
  const HandWrittenJob job(store, "first");
  elastic::MemberRecord dead = job.add_worker(1);
  dead.address = kNeighbour;
  job.write(job.keys().member(dead.id), to_text(dead));
  Reach self = in_a_container(kMine);
  self.can_open = [&, looks = 0](const std::string&) mutable {
    if (++looks == 2) job.remove(job.keys().member(dead.id));
    return false;
  };
  EXPECT_TRUE(check_reach(self, store, job.keys(), std::chrono::seconds(60)));
}

TEST(Reach, IsRefusedAtOnceWhereTimeDoesNotHelp) {
  elastic::FakeKvStore store;
  const HandWrittenJob job(store, "first");
  elastic::MemberRecord far = job.add_worker(1);
  far.address = kFar;
  job.write(job.keys().member(far.id), to_text(far));
  EXPECT_FALSE(check_reach(at(kMine), store, job.keys(), std::chrono::seconds(3600)));
}

TEST(Reach, KnowsTheSocketsOfThisUser) {
  const TemporaryDirectory directory;
  const auto connector = listen_for_workers({}, {}, {0, directory.file("run"), [](const std::string&) {}});
  ASSERT_TRUE(connector) << connector.error();
  EXPECT_TRUE(is_own_socket(trainer::parse_peer_address((*connector)->address())->local->path));
  std::ofstream(directory.file("file")) << "text";
  EXPECT_FALSE(is_own_socket(directory.file("file")));
  EXPECT_FALSE(is_own_socket(directory.file("nowhere")));
}

}  // namespace
}  // namespace everstep::launcher
