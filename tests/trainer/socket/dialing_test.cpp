#include "trainer/socket/dialing.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/stranger.h"
#include "trainer/socket/dialer.h"

namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

int option(const FileDescriptor& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(socket.get(), level, name, &value, &size), 0);
  return value;
}

// A socket that its owner left behind: bound, and nobody listens.
std::string leave_a_dead_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return path;
}

class RuntimeDirectory : public testing::Test {
 protected:
  Result<UnixListener> listen(const std::string& name = "worker") { return UnixListener::listen(run_, name); }

  TemporaryDirectory directory_;
  const fs::path run_ = directory_.path() / "run";
};

TEST_F(RuntimeDirectory, IsMadeForThisUserAlone) {
  const auto listener = listen();
  ASSERT_TRUE(listener) << listener.error();
  struct stat made {};
  ASSERT_EQ(::stat(run_.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700U);
  EXPECT_THAT(listener->path(), StartsWith((run_ / "worker-").string()));
  EXPECT_TRUE(fs::is_socket(listener->path()));
}

TEST_F(RuntimeDirectory, ThatOthersMayEnterIsRefused) {
  for (const mode_t mode : {0701, 0710, 0770, 0755, 0777, 01777}) {
    fs::create_directory(run_);
    ASSERT_EQ(::chmod(run_.c_str(), mode), 0);
    const auto listener = listen();
    ASSERT_FALSE(listener) << std::oct << mode;
    EXPECT_EQ(listener.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(listener.error().message, HasSubstr("other users may enter it"));
    EXPECT_THAT(listener.error().hint, HasSubstr("XDG_RUNTIME_DIR"));
  }
}

TEST_F(RuntimeDirectory, ThatIsSomethingElseIsRefused) {
  std::ofstream(run_) << "a file";
  EXPECT_THAT(listen().error().message, HasSubstr("it is no directory"));
  fs::remove(run_);
  fs::create_directory(directory_.path() / "target");
  fs::permissions(directory_.path() / "target", fs::perms::owner_all);
  fs::create_directory_symlink(directory_.path() / "target", run_);
  EXPECT_THAT(listen().error().message, HasSubstr("it is no directory")) << "who made the link may change it";
  EXPECT_THAT(UnixListener::listen(directory_.path() / "not" / "there", "x").error().message,
              HasSubstr("No such file"));
}

TEST_F(RuntimeDirectory, ThatBelongsToAnotherUserIsRefused) {
  ASSERT_EQ(::geteuid(), 0U) << "only root can give a directory away";
  fs::create_directory(run_);
  fs::permissions(run_, fs::perms::owner_all);
  ASSERT_EQ(::chown(run_.c_str(), 65534, 65534), 0);
  const auto listener = listen();
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(listener.error().message, HasSubstr("it belongs to another user"));
}

TEST_F(RuntimeDirectory, TwoWorkersOfOneNameGetTwoSockets) {
  const auto first = listen();
  const auto second = listen();
  const auto third = listen();
  EXPECT_NE(first->path(), second->path());
  EXPECT_NE(second->path(), third->path());
  for (const auto* one : {&first, &second, &third}) EXPECT_TRUE(call_unix((*one)->path()));
}

// In two containers one path leads to two directories, and must not lead to the wrong worker.
TEST_F(RuntimeDirectory, SocketsOfOneNameInTwoDirectoriesHaveDifferentNames) {
  const auto here = listen();
  const auto there = UnixListener::listen(directory_.path() / "other", "worker");
  EXPECT_NE(fs::path(here->path()).filename(), fs::path(there->path()).filename());
}

TEST_F(RuntimeDirectory, SocketsOfTheDeadAreRemovedAndThoseOfTheLivingStay) {
  auto living = listen("living");
  const std::string dead = leave_a_dead_socket(run_ / "dead.sock");
  std::ofstream(run_ / "notes.txt") << "not ours to remove";
  const auto newcomer = listen("newcomer");
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_TRUE(fs::exists(living->path()));
  EXPECT_TRUE(fs::exists(run_ / "notes.txt"));
  EXPECT_TRUE(call_unix(living->path()));
}

// Stopped or busy, it may come to itself: its callers wait in a queue, which has room for that many.
TEST_F(RuntimeDirectory, SocketsOfTheLivingStayEvenIfTheyTakeNoCalls) {
  auto living = listen("living");
  const FileDescriptor socket = living->take_socket();
  ASSERT_EQ(::listen(socket.get(), 0), 0);
  std::vector<FileDescriptor> callers;
  Result<FileDescriptor> caller = call_unix(living->path());
  while (caller) {
    callers.push_back(std::move(caller).value());
    caller = call_unix(living->path());
  }
  EXPECT_EQ(caller.error().code, ErrorCode::kDeadlineExceeded) << "nobody knows whether it lives";
  const auto newcomer = listen("newcomer");
  EXPECT_TRUE(fs::exists(living->path()));
}

TEST_F(RuntimeDirectory, ASocketGoesWithItsListener) {
  std::optional<UnixListener> listener(std::move(listen()).value());
  UnixListener moved = std::move(*listener);
  listener.reset();
  const std::string path = moved.path();
  EXPECT_TRUE(fs::exists(path));
  { const UnixListener last = std::move(moved); }
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(RuntimeDirectory, APathThatIsTooLongIsRefusedByName) {
  const auto listener = listen(std::string(100, 'n'));
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(listener.error().message, HasSubstr("too long"));
  EXPECT_EQ(call_unix("/" + std::string(120, 'n')).error().code, ErrorCode::kInvalidArgument);
}

TEST_F(RuntimeDirectory, NobodyThereIsToldFromNobodyKnows) {
  fs::create_directory(run_);
  EXPECT_EQ(call_unix(run_ / "nothing.sock").error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(call_unix(leave_a_dead_socket(run_ / "dead.sock")).error().code, ErrorCode::kUnavailable);
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

// Else the kernel would take 4 MiB and more for each of them.
TEST(TcpCalls, SocketsAskForBoundedBuffersAndSendAtOnce) {
  const TcpListener listener = listen_on_tcp({"127.0.0.1", 0, 0}).value();
  const FileDescriptor caller = call("127.0.0.1:" + std::to_string(listener.port));
  const FileDescriptor called(::accept(listener.socket.get(), nullptr, nullptr));
  for (const FileDescriptor* socket : {&caller, &called}) {
    EXPECT_LE(option(*socket, SOL_SOCKET, SO_SNDBUF), 2 << 20);
    EXPECT_LE(option(*socket, SOL_SOCKET, SO_RCVBUF), 2 << 20);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_NODELAY), 1);
    EXPECT_EQ(option(*socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 0) << "only lifelines are given up on";
  }
  notice_lost_host(caller.get());
  EXPECT_EQ(option(caller, IPPROTO_TCP, TCP_USER_TIMEOUT), 1800);
}

TEST(BootId, IsOneLine) {
  EXPECT_EQ(boot_id(), boot_id());
  EXPECT_EQ(boot_id().find_first_of("\n /"), std::string::npos);
  EXPECT_FALSE(boot_id().empty());
}

}  // namespace
}  // namespace everstep::trainer
