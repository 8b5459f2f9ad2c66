#include "launcher/rehearse/chaos/tcp_proxy.h"

#include <chrono>
#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launcher/supervise/etcd_process.h"

namespace everstep::launcher::chaos {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

sockaddr_in address_of(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

// A worker's port behind a proxy, and one connection of a peer.
class ChaosProxy : public testing::Test {
 protected:
  void SetUp() override {
    const int port = unused_port();
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in worker = address_of("127.0.0.1", port);
    ASSERT_EQ(::bind(listener_, reinterpret_cast<const sockaddr*>(&worker), sizeof worker), 0);
    ASSERT_EQ(::listen(listener_, 1), 0);
    auto proxy = TcpProxy::start(port);
    ASSERT_TRUE(proxy.ok()) << proxy.error().line();
    proxy_ = std::move(*proxy);
    address_ = address_of(TcpProxy::kAddress, port);
    peer_ = call();
    worker_ = ::accept(listener_, nullptr, nullptr);
    ASSERT_GE(worker_, 0);
  }

  void TearDown() override {
    for (const int socket : {listener_, peer_, worker_}) ::close(socket);
  }

  int call() const {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::connect(socket, reinterpret_cast<const sockaddr*>(&address_), sizeof address_), 0);
    return socket;
  }

  static void send(int socket, const std::string& text) {
    EXPECT_EQ(::send(socket, text.data(), text.size(), MSG_NOSIGNAL), std::ssize(text));
  }

  // What comes within the time; "" if nothing does, "end" at the end of the connection.
  static std::string receive(int socket, milliseconds limit) {
    pollfd wait{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, static_cast<int>(limit.count())) != 1) return "";
    char buffer[64];
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    return count <= 0 ? "end" : std::string(buffer, static_cast<std::size_t>(count));
  }

  static constexpr milliseconds kPatience{5000};
  static constexpr milliseconds kMoment{150};  // less than a slow proxy waits

  sockaddr_in address_{};
  int listener_ = -1;
  int peer_ = -1;
  int worker_ = -1;
  std::unique_ptr<TcpProxy> proxy_;
};

TEST_F(ChaosProxy, HandsOnWhatComes) {
  send(peer_, "hello");
  EXPECT_EQ(receive(worker_, kPatience), "hello");
  send(worker_, "yes");
  EXPECT_EQ(receive(peer_, kPatience), "yes");
  ::shutdown(peer_, SHUT_WR);
  EXPECT_EQ(receive(worker_, kPatience), "end");
}

// As it is without a proxy: who has said all may still listen.
TEST_F(ChaosProxy, HandsOnTheEndOfEachDirectionForItself) {
  send(peer_, "last words");
  ::shutdown(peer_, SHUT_WR);
  EXPECT_EQ(receive(worker_, kPatience), "last words");
  EXPECT_EQ(receive(worker_, kPatience), "end");
  send(worker_, "answer");
  EXPECT_EQ(receive(peer_, kPatience), "answer");
}

TEST_F(ChaosProxy, HoldsUpNobodyElseForOneWhoDoesNotRead) {
  const std::string much(std::size_t{64} << 20, 'x');
  std::thread sender([&] {
    for (std::size_t sent = 0; sent < much.size();) {
      const ssize_t count = ::send(peer_, much.data() + sent, much.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return;
      sent += static_cast<std::size_t>(count);
    }
  });
  EXPECT_EQ(receive(worker_, kPatience)[0], 'x');
  const int second = call();
  const int answered = ::accept(listener_, nullptr, nullptr);
  send(second, "hello");
  EXPECT_EQ(receive(answered, kPatience), "hello");
  ::shutdown(peer_, SHUT_RDWR);  // the sender waits for a reader until then
  sender.join();
  ::close(second);
  ::close(answered);
}

TEST_F(ChaosProxy, HoldsBackUntilItPassesAgain) {
  proxy_->set(TcpProxy::Mode::kHold);
  send(peer_, "hello");
  EXPECT_EQ(receive(worker_, kMoment), "");
  proxy_->set(TcpProxy::Mode::kPass);
  EXPECT_EQ(receive(worker_, kPatience), "hello");
}

TEST_F(ChaosProxy, ChangesOneBit) {
  proxy_->set(TcpProxy::Mode::kCorrupt);
  send(peer_, "hello");
  EXPECT_EQ(receive(worker_, kPatience), "helln");
}

TEST_F(ChaosProxy, KeepsTheOrderWhenItIsSlowNoMore) {
  proxy_->set(TcpProxy::Mode::kDelay);
  send(peer_, "first ");
  std::this_thread::sleep_for(kMoment / 2);  // it has taken that
  proxy_->set(TcpProxy::Mode::kPass);
  send(peer_, "second");
  std::string all;
  while (all.size() < 12) all += receive(worker_, kPatience);
  EXPECT_EQ(all, "first second");
}

TEST_F(ChaosProxy, IsSlow) {
  proxy_->set(TcpProxy::Mode::kDelay);
  const auto start = Clock::now();
  send(peer_, "hello");
  EXPECT_EQ(receive(worker_, kPatience), "hello");
  EXPECT_GE(Clock::now() - start, kMoment);
}

}  // namespace
}  // namespace everstep::launcher::chaos
