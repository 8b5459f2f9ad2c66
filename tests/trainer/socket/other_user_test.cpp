#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/temporary_directory.h"
#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/boot_id.h"
#include "trainer/socket/peer_address.h"
#include "trainer/socket/unix_sockets.h"

// What another user of the same machine can do.
namespace everstep::trainer {
namespace {

using testing::HasSubstr;

constexpr uid_t kNobody = 65534;

// A process of the user nobody, started before this one has threads. It is told a path and answers with a number.
class OtherUser {
 public:
  using Task = std::function<int(const std::string& path)>;

  explicit OtherUser(const Task& task) {
    int pipes[2];
    EVERSTEP_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, pipes) == 0, "socketpair failed");
    process_ = ::fork();
    pipe_ = FileDescriptor(pipes[process_ == 0 ? 1 : 0]);
    ::close(pipes[process_ == 0 ? 0 : 1]);
    if (process_ != 0) return;
    if (::setgroups(0, nullptr) != 0 || ::setgid(kNobody) != 0 || ::setuid(kNobody) != 0) ::_exit(1);
    std::string path(200, '\0');
    path.resize(::recv(pipe_.get(), path.data(), path.size(), 0));
    const int answer = task(path);
    ::send(pipe_.get(), &answer, sizeof answer, MSG_NOSIGNAL);
    char wait = 0;
    ::recv(pipe_.get(), &wait, 1, 0);  // until the test is over
    ::_exit(0);
  }
  ~OtherUser() {
    pipe_.reset();
    ::waitpid(process_, nullptr, 0);
  }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

  int ask(const std::string& path) const {
    ::send(pipe_.get(), path.data(), path.size(), MSG_NOSIGNAL);
    int answer = -1;
    EXPECT_EQ(::recv(pipe_.get(), &answer, sizeof answer, MSG_WAITALL), static_cast<ssize_t>(sizeof answer));
    return answer;
  }

 private:
  pid_t process_ = 0;
  FileDescriptor pipe_;
};

class OtherUsers : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::geteuid(), 0U) << "only root can be another user"; }
};

const FileDescriptor* connected = nullptr;  // the other user's, as long as it lives

int call_and_stay(const std::string& path) {
  auto socket = call_unix(path);
  if (!socket) return 1;
  connected = new FileDescriptor(std::move(socket).value());
  return hangs_up(*connected) ? 2 : 3;
}

TEST_F(OtherUsers, CannotOpenTheSocketOfAWorker) {
  const OtherUser other(call_and_stay);
  LogLines log;
  LoopbackWorkers workers(1, options_of(Wire::kUnix, log.hook()));
  const std::string path = parse_peer_address(workers.addresses[0])->local->path;
  std::filesystem::permissions(path, std::filesystem::perms::all);  // the directory alone keeps others out
  EXPECT_EQ(other.ask(path), 1);
  EXPECT_TRUE(log.lines().empty());
}

TEST_F(OtherUsers, AreHungUpOnEvenIfTheyReachTheSocket) {
  const OtherUser other(call_and_stay);
  LogLines log;
  LoopbackWorkers workers(1, options_of(Wire::kUnix, log.hook()));
  const std::filesystem::path path = parse_peer_address(workers.addresses[0])->local->path;
  for (auto part = path; part != std::filesystem::temp_directory_path(); part = part.parent_path()) {
    std::filesystem::permissions(part, std::filesystem::perms::all);
  }
  EXPECT_EQ(other.ask(path), 2);
  EXPECT_TRUE(log.comes("it is a process of another user (uid 65534)"));
}

// A socket of theirs at the address of a worker is not spoken to.
TEST_F(OtherUsers, AreNotCalled) {
  const OtherUser other([](const std::string& directory) {
    auto listener = UnixListener::listen(directory + "/theirs", "worker");
    if (!listener) return 1;
    new UnixListener(std::move(listener).value());
    return 0;
  });
  const TemporaryDirectory open_to_all;
  std::filesystem::permissions(open_to_all.path(), std::filesystem::perms::all);
  ASSERT_EQ(other.ask(open_to_all.path()), 0);
  std::string theirs;
  for (const auto& entry : std::filesystem::directory_iterator(open_to_all.path() / "theirs")) {
    if (entry.is_socket()) theirs = entry.path();
  }
  LoopbackWorkers workers(1);
  const std::string address = to_text(PeerAddress{{}, UnixAddress{boot_id(), theirs}});
  const auto outcome = workers.connectors[0]->connect(test_roster(1, {address, workers.addresses[0]}), kSoon);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kInvalidArgument) << outcome.connection.error();
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("another user (uid 65534)"));
  EXPECT_EQ(outcome.lost, (LostPeer{0, LostPeer::How::kRefused}));
}

}  // namespace
}  // namespace everstep::trainer
