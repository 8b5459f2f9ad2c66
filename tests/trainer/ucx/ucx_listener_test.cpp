#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/trainer/ucx/loopback_workers.h"
#include "trainer/ucx/ucx_address.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;

// Connects to a lifeline port like a stranger would. Stays connected as long as the result lives.
FileDescriptor call(const LifelineAddress& address) {
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) return {};
  return socket;
}

std::unique_ptr<UcxListener> listen_as(int worker, std::uint64_t lineage = kTestLineage, LogHook log = {}) {
  return UcxListener::listen({.worker = worker, .lineage = lineage, .log = std::move(log)}).value();
}

// The local addresses, as the kernel writes them, at which this process accepts TCP connections.
std::set<std::string> listening_hosts() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::string> hosts;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, skip, inode;
      fields >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skip;
      fields >> inode;
      if (state == "0A" && sockets.contains(inode)) hosts.insert(local.substr(0, local.find(':')));
    }
  }
  return hosts;
}

TEST(UcxListener, ListensOnLoopbackOnly) {
  const auto transports = make_ucx_transports(2);
  EXPECT_EQ(listening_hosts(), (std::set<std::string>{"0100007F"}));
}

TEST(UcxListener, NamesAPortThatIsInUse) {
  const auto first = listen_as(0);
  const std::uint16_t port = decode_address(first->address())->lifeline.port;
  const auto second = UcxListener::listen({.port = port});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(second.error().message, HasSubstr("port " + std::to_string(port) + " of 127.0.0.1 is in use"));
}

TEST(UcxListener, RefusesAddressesThatAreNotThisMachines) {
  for (const char* bind : {"203.0.113.1", "localhost", "", "0.0.0.0"}) {
    const auto listener = UcxListener::listen({.bind = bind});
    ASSERT_FALSE(listener) << bind;
    EXPECT_EQ(listener.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(UcxListener, RefusesDamagedAddresses) {
  const auto listener = listen_as(0);
  const std::string good = listener->address();
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(decode_address(good.substr(0, length)));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    EXPECT_FALSE(decode_address(bad)) << "byte " << at;
  }
  EXPECT_FALSE(decode_address(good + "x"));
  EXPECT_EQ(listener->connect({"nonsense"}, 1s).error().code, ErrorCode::kInvalidArgument);
}

TEST(UcxListener, RefusesAddressesOutOfOrder) {
  const auto first = listen_as(0);
  const auto second = listen_as(1);
  EXPECT_EQ(first->connect({second->address(), first->address()}, 1s).error().code, ErrorCode::kInvalidArgument);
}

TEST(UcxListener, OneWorkerAloneNeedsNobody) {
  const auto listener = listen_as(0);
  const auto transport = listener->connect({listener->address()}, 1s);
  ASSERT_TRUE(transport) << transport.error();
  EXPECT_TRUE(transport.value()->close(1s));
}

TEST(UcxListener, StrangersAreTurnedAwayAndLogged) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  const auto first = listen_as(0, kTestLineage, log);
  const auto second = listen_as(1);
  const LifelineAddress port = decode_address(first->address())->lifeline;
  const FileDescriptor noisy = call(port);
  const std::string noise(1000, 'x');
  ::send(noisy.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  const FileDescriptor silent = call(port);
  call(port).reset();  // hangs up at once
  const auto stranger = listen_as(1, kTestLineage + 1);
  Status strangers_end;
  std::thread confused([&] { strangers_end = stranger->connect({first->address(), stranger->address()}, 5s).error(); });
  std::this_thread::sleep_for(50ms);  // all of them stand in line before the real peer

  Result<std::unique_ptr<Transport>> other = Error{};
  std::thread connecting([&] { other = second->connect({first->address(), second->address()}, 5s); });
  const auto transport = first->connect({first->address(), second->address()}, 5s);
  connecting.join();
  confused.join();
  ASSERT_TRUE(transport) << transport.error();
  ASSERT_TRUE(other) << other.error();
  EXPECT_EQ(strangers_end.error().code, ErrorCode::kStaleGeneration);
  EXPECT_THAT(strangers_end.error().message, HasSubstr("it belongs to another lineage"));
  EXPECT_THAT(lines, Contains(HasSubstr("does not speak this protocol")));
  EXPECT_THAT(lines, Contains(HasSubstr("hung up")));
  EXPECT_THAT(lines, Contains(HasSubstr("another lineage")));
  EXPECT_FALSE(call(port).is_open()) << "the port is closed once all peers are there";
  EXPECT_TRUE(transport.value()->status());
}

TEST(UcxListener, NamesAPeerThatDoesNotConnect) {
  const auto first = listen_as(0);
  const auto second = listen_as(1);  // never calls
  const auto transport = first->connect({first->address(), second->address()}, 50ms);
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(transport.error().message, HasSubstr("worker 1 did not connect within 50 ms"));
}

TEST(UcxListener, NamesAPeerThatIsGoneWithoutWaiting) {
  auto first = listen_as(0);
  const auto second = listen_as(1);
  const std::string address = first->address();
  first.reset();
  const auto transport = second->connect({address, second->address()}, 1h);
  ASSERT_FALSE(transport);
  EXPECT_EQ(transport.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(transport.error().message, HasSubstr("worker 0 cannot be reached"));
}

}  // namespace
}  // namespace everstep::trainer
