#include "trainer/socket/unix_sockets.h"

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/temporary_directory.h"

namespace everstep::trainer {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
namespace fs = std::filesystem;

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
  while (caller && caller->is_open()) {
    callers.push_back(std::move(caller).value());
    caller = call_unix(living->path());
  }
  EXPECT_TRUE(caller) << "somebody listens: " << caller.error();
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

// Timers and debuggers send signals, which are no reason to do without the directory.
TEST_F(RuntimeDirectory, ASignalDoesNotEndTheWaitForTheOthersThatUseIt) {
  struct sigaction ignore {};
  struct sigaction before {};
  ignore.sa_handler = [](int) {};  // and without SA_RESTART
  ASSERT_EQ(::sigaction(SIGUSR1, &ignore, &before), 0);
  ASSERT_TRUE(listen());
  FileDescriptor other(::open((run_ / "lock").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  std::optional<Result<UnixListener>> listener;
  std::thread waiting([&] { listener.emplace(listen()); });
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ::pthread_kill(waiting.native_handle(), SIGUSR1);
  }
  other.reset();
  waiting.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  EXPECT_TRUE(*listener) << listener->error();
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

}  // namespace
}  // namespace everstep::trainer
