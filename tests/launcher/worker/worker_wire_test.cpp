#include "launcher/worker/worker_wire.h"

#include <chrono>
#include <filesystem>
#include <future>
#include <mutex>

#include <gmock/gmock.h>

#include "tests/temporary_directory.h"
#include "trainer/socket/peer_address.h"

namespace everstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class WorkerWire : public testing::Test {
 protected:
  WirePlace place() {
    return {kLineage, sockets(), [this](const std::string& line) {
              const std::scoped_lock lock(mutex_);
              lines_.push_back(line);
            }};
  }
  std::string sockets() const { return directory_.file("sockets"); }
  std::vector<std::string> lines() {
    const std::scoped_lock lock(mutex_);
    return lines_;
  }

  static trainer::PeerAddress address_of(const trainer::PeerConnector& connector) {
    return trainer::parse_peer_address(connector.address()).value();
  }

  // Both connect with each other. Each keeps its connection until both have one: one that goes earlier is a death.
  static void expect_connection(trainer::PeerConnector& first, trainer::PeerConnector& second) {
    const auto connect = [&](int worker) {
      const trainer::PeerRoster roster{kLineage,
                                       Generation{1},
                                       0,
                                       worker,
                                       {{WorkerId{{1, 0}}, first.address()}, {WorkerId{{1, 1}}, second.address()}}};
      return (worker == 0 ? first : second).connect(roster, std::chrono::seconds(60));
    };
    std::future<trainer::ConnectOutcome> other = std::async(std::launch::async, connect, 1);
    const trainer::ConnectOutcome ours = connect(0);
    const trainer::ConnectOutcome theirs = other.get();
    EXPECT_TRUE(ours.connection) << ours.connection.error();
    EXPECT_TRUE(theirs.connection) << theirs.connection.error();
  }

  static constexpr std::uint64_t kLineage = 7;
  const JobSecret secret_ = JobSecret::of("a secret of the job");

 private:
  TemporaryDirectory directory_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

TEST_F(WorkerWire, WithoutASecretIsASocketOfThisHostAlone) {
  const auto connector = listen_for_workers({}, {}, place());
  ASSERT_TRUE(connector) << connector.error();
  EXPECT_FALSE(address_of(**connector).tcp);
  EXPECT_THAT(address_of(**connector).local->path, HasSubstr(sockets()));
}

TEST_F(WorkerWire, WithASecretIsThatAndAPort) {
  const auto connector = listen_for_workers({}, secret_, place());
  ASSERT_TRUE(connector) << connector.error();
  EXPECT_EQ(address_of(**connector).tcp->host, "127.0.0.1");
  EXPECT_TRUE(address_of(**connector).local);
  EXPECT_THAT(lines(), IsEmpty());
}

TEST_F(WorkerWire, TellsPeersTheAdvertisedAddress) {
  WireOptions wire;
  wire.bind = "0.0.0.0";
  wire.advertise = "127.0.0.9";
  const auto connector = listen_for_workers(wire, secret_, place());
  ASSERT_TRUE(connector) << connector.error();
  EXPECT_EQ(address_of(**connector).tcp->host, "127.0.0.9");
}

TEST_F(WorkerWire, WithinOneHostIsUsedBeforeThePort) {
  const auto first = listen_for_workers({}, secret_, place());
  const auto second = listen_for_workers({}, secret_, place());
  ASSERT_TRUE(first && second);
  expect_connection(**first, **second);
  const std::string wired = "event=wired generation=1 peers_over_unix=1 peers_over_tls=0";
  EXPECT_THAT(lines(), ElementsAre(HasSubstr(wired), HasSubstr(wired)));
}

TEST_F(WorkerWire, IsTheNetworkAloneIfSoWanted) {
  WireOptions wire;
  wire.tcp_only = true;
  const auto first = listen_for_workers(wire, secret_, place());
  const auto second = listen_for_workers({}, secret_, place());
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(address_of(**first).local);
  expect_connection(**first, **second);
  const std::string wired = "event=wired generation=1 peers_over_unix=0 peers_over_tls=1";
  EXPECT_THAT(lines(), ElementsAre(HasSubstr(wired), HasSubstr(wired)));
}

TEST_F(WorkerWire, GoesOnOverTcpAloneWhereThereCanBeNoSockets) {
  WirePlace far = place();
  far.runtime_directory = sockets() + std::string(100, 'x');
  const auto connector = listen_for_workers({}, secret_, far);
  ASSERT_TRUE(connector) << connector.error();
  EXPECT_FALSE(address_of(**connector).local);
  EXPECT_THAT(lines(), ElementsAre(testing::AllOf(HasSubstr("event=no_unix_sockets reason="), HasSubstr("too long"))));
}

TEST_F(WorkerWire, WithoutASecretNeedsSockets) {
  std::filesystem::create_directory(sockets());
  std::filesystem::permissions(sockets(), std::filesystem::perms::all);
  const auto connector = listen_for_workers({}, {}, place());
  ASSERT_FALSE(connector);
  EXPECT_THAT(connector.error().line(), HasSubstr("XDG_RUNTIME_DIR"));
}

TEST_F(WorkerWire, SaysThatItsPortIsTaken) {
  WireOptions wire;
  const auto first = listen_for_workers(wire, secret_, place());
  ASSERT_TRUE(first) << first.error();
  const int port = address_of(**first).tcp->port;
  wire.port_range = std::pair(port, port);
  const auto second = listen_for_workers(wire, secret_, place());
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().line(), HasSubstr("port " + std::to_string(port)));
  EXPECT_THAT(lines(), IsEmpty()) << "that has nothing to do with sockets of this host";
}

}  // namespace
}  // namespace everstep::launcher
