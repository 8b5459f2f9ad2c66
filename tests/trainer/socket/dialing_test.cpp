#include "trainer/socket/dialing.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/stranger.h"
#include "trainer/socket/sockets.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

int option(const FileDescriptor& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(socket.get(), level, name, &value, &size), 0);
  return value;
}

TEST(TcpPorts, ARangeWithoutAFreePortIsNamed) {
  // Two neighbours that this test holds itself: wherever they are, both are taken.
  std::optional<TcpListener> low;
  std::optional<TcpListener> high;
  for (int tries = 0; tries < 100 && !high; ++tries) {
    low = listen_on_tcp({"127.0.0.1", 0, 0}).value();
    if (low->port == 65535) continue;
    const auto next = static_cast<std::uint16_t>(low->port + 1);
    if (auto taken = listen_on_tcp({"127.0.0.1", next, next})) high = std::move(taken).value();
  }
  ASSERT_TRUE(high);
  const auto third = listen_on_tcp({"127.0.0.1", low->port, high->port});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(third.error().message, HasSubstr("every port from " + std::to_string(low->port) + " to " +
                                               std::to_string(high->port) + " of 127.0.0.1 is in use"));
  const std::uint16_t taken = low->port;
  low.reset();
  const auto fourth = listen_on_tcp({"127.0.0.1", taken, high->port});
  ASSERT_TRUE(fourth) << fourth.error();
  EXPECT_EQ(fourth->port, taken) << "a port that was left is free at once";
}

TEST(TcpPorts, ThatAreGivenAloneAreTheOnlyOnes) {
  const TcpListener first = listen_on_tcp({"127.0.0.1", 0, 0}).value();
  EXPECT_THAT(listen_on_tcp({"127.0.0.1", first.port, 0}).error().message,
              StartsWith("port " + std::to_string(first.port) + " of 127.0.0.1 is in use"));
}

TEST(TcpPorts, OfAnotherMachineCannotBeHad) {
  const auto listener = listen_on_tcp({"203.0.113.1", 0, 0});
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(listener.error().message, HasSubstr("203.0.113.1"));
  EXPECT_THAT(listen_on_tcp({"worker-7", 0, 0}).error().message, HasSubstr("'worker-7' is not an IP address"));
}

void expect_heard(const TcpListener& listener, const std::string& caller) {
  const Result<FileDescriptor> socket = call_tcp({caller, listener.port});
  ASSERT_TRUE(socket) << caller << socket.error();
  FileDescriptor heard;
  EXPECT_TRUE(comes_true([&] {
    heard = FileDescriptor(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return heard.is_open();
  })) << caller;
}

TEST(TcpPorts, OfAllAddressesHearBothKindsOfCallers) {
  const TcpListener four = listen_on_tcp({"0.0.0.0", 0, 0}).value();
  expect_heard(four, "127.0.0.1");
  expect_heard(four, "127.0.0.9");
  const TcpListener six = listen_on_tcp({"::", 0, 0}).value();
  expect_heard(six, "127.0.0.1");
  expect_heard(six, "::1");
}

TEST(TcpCalls, AnUnusedPortIsRefusedAndAnUnreachableNetworkIsNot) {
  TcpListener listener = listen_on_tcp({"127.0.0.1", 0, 0}).value();
  const std::uint16_t port = listener.port;
  listener.socket.reset();
  const Result<FileDescriptor> refused = call_tcp({"127.0.0.1", port});
  const bool at_once = !refused && refused.error().code == ErrorCode::kUnavailable;
  EXPECT_TRUE(at_once || comes_true([&] { return call_error(refused->get()) == ECONNREFUSED; }));
  // No connection can lead there, which says nothing about who lives.
  const Result<FileDescriptor> lost = call_tcp({"224.0.0.1", port});
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code, ErrorCode::kDeadlineExceeded) << lost.error();
}

// A fault of its own is no news of the other one.
TEST(TcpCalls, AWorkerWithoutDescriptorsDoesNotTakeOthersForDead) {
  const TemporaryDirectory directory;
  const UnixListener there = UnixListener::listen(directory.file("run"), "there").value();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto by_tcp = call_tcp({"127.0.0.1", 4711});
  const auto by_unix = call_unix(there.path());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(by_tcp.error().code, ErrorCode::kDeadlineExceeded) << by_tcp.error();
  EXPECT_EQ(by_unix.error().code, ErrorCode::kDeadlineExceeded) << by_unix.error();
}

// What the kernel says if a worker asks for as much as it should: twice that, or twice what this machine allows.
int bounded_buffer(const std::string& limit) {
  int allowed = 0;
  std::ifstream("/proc/sys/net/core/" + limit) >> allowed;
  return 2 * std::min(1 << 20, allowed);
}

// Else the kernel would take 4 MiB and more for each of them.
TEST(TcpCalls, SocketsAskForBoundedBuffersAndSendAtOnce) {
  const TcpListener listener = listen_on_tcp({"127.0.0.1", 0, 0}).value();
  const FileDescriptor caller = call("127.0.0.1:" + std::to_string(listener.port));
  const FileDescriptor called(::accept(listener.socket.get(), nullptr, nullptr));
  for (const FileDescriptor* socket : {&caller, &called}) {
    EXPECT_EQ(option(*socket, SOL_SOCKET, SO_SNDBUF), bounded_buffer("wmem_max"));
    EXPECT_EQ(option(*socket, SOL_SOCKET, SO_RCVBUF), bounded_buffer("rmem_max"));
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0) << "only lifelines are given up on";
  }
  notice_lost_host(caller.get());
  EXPECT_EQ(option(caller, IPPROTO_TCP, TCP_USER_TIMEOUT), 1800);
}

}  // namespace
}  // namespace everstep::trainer
