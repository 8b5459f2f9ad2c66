#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/boot_id.h"
#include "trainer/socket/peer_address.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

// The local addresses, as the kernel writes them, at which this process accepts TCP connections.
std::multiset<std::string> listening_addresses() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::multiset<std::string> addresses;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, skip, inode;
      fields >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skip;
      fields >> inode;
      if (state == "0A" && sockets.contains(inode)) addresses.insert(local);
    }
  }
  return addresses;
}

SocketOptions tls_at(const TcpOptions& tcp) {
  SocketOptions options = tls_options();
  options.tcp = tcp;
  return options;
}

std::uint16_t port_of(const PeerConnector& connector) { return parse_peer_address(connector.address())->tcp->port; }

bool deliver(const std::vector<PeerConnection>& connections) {
  FrameHeader header;
  header.length = 1000;
  Transport& receiver = *connections[1].transport;
  const ReceiveId receive = receiver.post_receive(0, Channel::kTensors, header, allocate_zeroed(1000));
  connections[0].transport->send(1, Channel::kTensors, header, allocate_zeroed(1000));
  return receiver.wait(receive, kSoon).ok();
}

TEST(SocketConnector, WithoutASecretNoPortIsOpen) {
  LoopbackWorkers workers(2);
  const auto connections = workers.connect();
  EXPECT_THAT(listening_addresses(), testing::IsEmpty());
}

TEST(SocketConnector, OnePortPerWorkerOnLoopbackServesAllItsConnections) {
  LoopbackWorkers workers(3, tls_options());
  const auto connections = workers.connect();
  EXPECT_THAT(listening_addresses(), testing::SizeIs(3));
  EXPECT_THAT(listening_addresses(), testing::Each(StartsWith("0100007F:")));
}

TEST(SocketConnector, NamesAPortThatIsInUse) {
  const auto first = listen_for_peers(tls_options()).value();
  const auto second = listen_for_peers(tls_at({.first_port = port_of(*first)}));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(second.error().message, HasSubstr("port " + std::to_string(port_of(*first)) + " of 127.0.0.1 is in use"));
}

TEST(SocketConnector, TakesTheFirstFreePortOfARange) {
  const auto first = listen_for_peers(tls_options()).value();
  const std::uint16_t taken = port_of(*first);
  const auto last = static_cast<std::uint16_t>(std::min(taken + 20, 65535));
  const auto second = listen_for_peers(tls_at({.first_port = taken, .last_port = last}));
  ASSERT_TRUE(second) << second.error();
  EXPECT_GT(port_of(**second), taken);
  EXPECT_LE(port_of(**second), last);
}

TEST(SocketConnector, TellsTheAddressThatItIsToAdvertise) {
  for (const char* bind : {"127.0.0.1", "0.0.0.0", "::"}) {
    const auto connector = listen_for_peers(tls_at({.bind = bind, .advertise = "10.1.2.3"})).value();
    EXPECT_THAT(connector->address(), StartsWith("10.1.2.3:")) << bind;
  }
  const auto six = listen_for_peers(tls_at({.bind = "::", .advertise = "fd00::7"})).value();
  EXPECT_THAT(six->address(), StartsWith("[fd00::7]:"));
}

// Nobody else could call them.
TEST(SocketConnector, AllAddressesOfAMachineNeedOneToAdvertise) {
  for (const char* bind : {"0.0.0.0", "::", "::0", "0:0:0:0:0:0:0:0"}) {
    const auto connector = listen_for_peers(tls_at({.bind = bind}));
    ASSERT_FALSE(connector) << bind;
    EXPECT_EQ(connector.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(connector.error().hint, HasSubstr("--advertise"));
  }
}

TEST(SocketConnector, RefusesAddressesThatAreNotThisMachines) {
  for (const char* bind : {"203.0.113.1", "localhost", "", "2001:db8::1"}) {
    const auto connector = listen_for_peers(tls_at({.bind = bind}));
    ASSERT_FALSE(connector) << bind;
    EXPECT_EQ(connector.error().code, ErrorCode::kInvalidArgument);
  }
  for (const char* advertise : {"localhost", "fd00::7%eth0", "1.2.3", "10.0.0.7:4711"}) {
    const auto connector = listen_for_peers(tls_at({.advertise = advertise}));
    ASSERT_FALSE(connector) << advertise;
    EXPECT_EQ(connector.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(SocketConnector, RefusesToConnectToAddressesThatAreNone) {
  const auto connector = listen_for_peers(tls_options()).value();
  int generation = 0;
  for (const char* address : {"", "nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000",
                              "127.0.0.1:1x", "localhost:1", "127.0.0.1:01", "::1:5"}) {
    const auto outcome = connector->connect(test_roster(0, {connector->address(), address}, ++generation), 1s);
    EXPECT_EQ(outcome.connection.error().code, ErrorCode::kInvalidArgument) << address;
  }
}

TEST(SocketConnector, AWorkerThatNobodyCanCallIsRefused) {
  EXPECT_EQ(listen_for_peers({}).error().code, ErrorCode::kInvalidArgument);
}

TEST(SocketConnector, NobodyListensForOtherHostsWithoutASecret) {
  SocketOptions options = tls_options();
  options.seal = {};
  EXPECT_DEATH((void)listen_for_peers(options), "without a secret");
}

TEST(SocketConnector, WithoutASecretWorkersOfOtherHostsAreRefusedWithTheWordsToMakeOne) {
  LoopbackWorkers workers(1);
  int generation = 0;
  for (const char* elsewhere : {"unix=another-boot/run/everstep/process-1.sock", "127.0.0.1:4711"}) {
    const auto outcome =
        workers.connectors[0]->connect(test_roster(1, {elsewhere, workers.addresses[0]}, ++generation), 1s);
    EXPECT_EQ(outcome.connection.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(outcome.connection.error().line(), HasSubstr("--secret-file"));
    EXPECT_EQ(outcome.lost, (LostPeer{0, LostPeer::How::kRefused}));
  }
}

// Both ways lead to each worker; the shorter one is taken, and the log says which.
class TwoWays : public testing::Test {
 protected:
  static SocketOptions options(const TemporaryDirectory& directory, LogHook log) {
    SocketOptions options = tls_options(kTestSecret, std::move(log));
    options.runtime_directory = directory.file("run");
    return options;
  }

  TemporaryDirectory directory_;
  LogLines log_;
  LoopbackWorkers workers_{2, options(directory_, log_.hook())};
};

TEST_F(TwoWays, WorkersOfOneHostUseASocketInTheFileSystem) {
  EXPECT_TRUE(deliver(workers_.connect()));
  EXPECT_EQ(log_.count("peers_over_unix=1 peers_over_tls=0"), 2);
}

TEST_F(TwoWays, WhereThePathCannotBeOpenedTlsIsUsed) {
  for (std::string& address : workers_.addresses) address.replace(address.rfind('/'), 1, "/elsewhere-");
  EXPECT_TRUE(deliver(workers_.connect()));
  EXPECT_EQ(log_.count("peers_over_unix=0 peers_over_tls=1"), 2);
}

TEST_F(TwoWays, WhereTheBootIsAnotherTlsIsUsed) {
  for (std::string& address : workers_.addresses) address.replace(address.find("unix=") + 5, 4, "boot");
  EXPECT_TRUE(deliver(workers_.connect()));
  EXPECT_EQ(log_.count("peers_over_unix=0 peers_over_tls=1"), 2);
}

// A worker that ends waits for its last words to arrive. Meanwhile its port is free, and that is what sockets are named
// by.
TEST_F(TwoWays, ASuccessorOnTheSamePortKeepsItsSocket) {
  for (std::string& address : workers_.addresses) address.replace(address.find("unix=") + 5, 4, "boot");
  std::vector<PeerConnection> connections = workers_.connect();
  FrameHeader header;
  header.length = 16 << 20;
  connections[0].transport->send(1, Channel::kTensors, header, allocate_zeroed(header.length));  // and nobody reads it
  std::this_thread::sleep_for(300ms);  // until the kernel has all that it takes
  connections[0].transport->leave();
  connections[0] = {};
  SocketOptions options = this->options(directory_, log_.hook());
  options.tcp->first_port = port_of(*workers_.connectors[0]);
  std::atomic<bool> has_ended{false};
  std::thread ending([&] {
    workers_.connectors[0].reset();
    has_ended = true;
  });
  std::unique_ptr<PeerConnector> successor;
  EXPECT_TRUE(comes_true([&] {
    Result<std::unique_ptr<PeerConnector>> listening = listen_for_peers(options);
    if (listening) successor = std::move(listening).value();
    return successor != nullptr;
  }));
  EXPECT_FALSE(has_ended) << "this test is about one that takes its time";
  ending.join();
  const auto reached = call_unix(parse_peer_address(successor->address())->local->path);
  EXPECT_TRUE(reached) << reached.error();
}

TEST_F(TwoWays, AWorkerWithAPortGoesOnWithoutSocketsAndSaysSo) {
  SocketOptions options = this->options(directory_, log_.hook());
  options.runtime_directory = directory_.path() / std::string(kLongestRuntimeDirectory, 'd');
  const auto connector = listen_for_peers(options);
  ASSERT_TRUE(connector) << connector.error();
  EXPECT_FALSE(parse_peer_address((*connector)->address())->local);
  EXPECT_EQ(log_.count("event=no_unix_sockets reason="), 1);
  EXPECT_EQ(log_.count("too long for sockets"), 1);
}

TEST_F(TwoWays, APortThatIsInUseIsNotBlamedOnSockets) {
  SocketOptions options = this->options(directory_, log_.hook());
  options.tcp->first_port = port_of(*workers_.connectors[0]);
  EXPECT_THAT(listen_for_peers(options).error().message, HasSubstr("is in use"));
  EXPECT_THAT(log_.lines(), testing::IsEmpty());
}

TEST(SocketConnector, WorkersThatListenOnAllAddressesAreReachedAtTheOneTheyAdvertise) {
  for (const auto& [bind, advertise] : {std::pair{"0.0.0.0", "127.0.0.3"}, {"::", "127.0.0.3"}, {"::", "::1"}}) {
    LogLines log;
    SocketOptions options = tls_options(kTestSecret, log.hook());
    options.tcp = TcpOptions{.bind = bind, .advertise = advertise};
    LoopbackWorkers workers(2, options);
    EXPECT_TRUE(deliver(workers.connect())) << bind << " " << advertise;
    EXPECT_EQ(log.count("peers_over_tls=1"), 2);
  }
}

// The address is what peers have in their records.
TEST(SocketConnector, AWorkerThatComesBackToItsPortHasTheAddressThatItHadBefore) {
  const TemporaryDirectory directory;
  SocketOptions options = tls_options();
  options.runtime_directory = directory.file("run");
  auto connector = listen_for_peers(options).value();
  const std::string address = connector->address();
  options.tcp->first_port = port_of(*connector);
  connector.reset();
  EXPECT_EQ(listen_for_peers(options).value()->address(), address);
}

TEST(SocketConnector, ARuntimeDirectoryWithTooLongAPathIsRefused) {
  const TemporaryDirectory directory;
  SocketOptions options;
  options.runtime_directory = directory.path() / std::string(kLongestRuntimeDirectory, 'd');
  const auto connector = listen_for_peers(options);
  ASSERT_FALSE(connector);
  EXPECT_EQ(connector.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(connector.error().message, HasSubstr("too long for sockets"));
}

// Peers have another working directory.
TEST(SocketConnector, ARelativeRuntimeDirectoryIsTheOneOfThisProcess) {
  const TemporaryDirectory directory;
  SocketOptions options;
  options.lineage = kTestLineage;
  options.runtime_directory = std::filesystem::relative(directory.file("run"));
  const auto connector = listen_for_peers(options).value();
  const auto address = parse_peer_address(connector->address());
  ASSERT_TRUE(address) << address.error();
  EXPECT_EQ(address->local->boot, boot_id());
  EXPECT_TRUE(std::filesystem::path(address->local->path).is_absolute());
  EXPECT_TRUE(call_unix(address->local->path));
}

TEST(SocketConnector, ASocketGoesWithItsWorker) {
  LoopbackWorkers workers(1);
  const std::string path = parse_peer_address(workers.addresses[0])->local->path;
  EXPECT_TRUE(std::filesystem::is_socket(path));
  workers.connectors.clear();
  EXPECT_FALSE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace everstep::trainer
