#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "tests/trainer/socket/handmade_peer.h"
#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/sockets.h"

// What lifelines carry, and what it means.
namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using namespace std::string_view_literals;
using How = LostPeer::How;

constexpr std::string_view kGoodbye = "g\0\0"sv;
constexpr std::string_view kGaveUp = "u\0\0"sv;
constexpr std::string_view kBeat = "a\0\0"sv;
constexpr std::string_view kDeathOf2 = "d\x02\0"sv;

// A real worker 0 that connects and waits for worker 2, which never calls; worker 1, whose words a test chooses, has
// all its connections.
class LastWords : public OverEachWire {
 protected:
  LastWords() {
    connecting_ = std::thread([this] { outcome_ = workers_.connectors[0]->connect(roster_, kTime); });
    const auto welcome = introduce(lifeline_, seal_of(GetParam()), hello_of_worker_1());
    for (int channel = 0; channel < kChannels; ++channel) {
      channels_.emplace_back(workers_.addresses[0], GetParam());
      const CallerHello hello = hello_of_worker_1(1, 0, {static_cast<Channel>(channel)});
      EXPECT_EQ(introduce(channels_.back(), seal_of(GetParam()), hello, welcome->ticket)->kind, Reply::Kind::kWelcome);
    }
  }
  ~LastWords() override {
    if (connecting_.joinable()) connecting_.join();
  }

  // What worker 0 makes of it if worker 1 says this and hangs up.
  LostPeer lost_after(const std::vector<std::string_view>& words) {
    for (const std::string_view word : words) lifeline_.say(word);
    lifeline_.hang_up();
    connecting_.join();
    return outcome_.lost.value();
  }

  static constexpr std::chrono::milliseconds kTime{2000};

  LoopbackWorkers workers_{3, options_of(GetParam())};
  const PeerRoster roster_ = test_roster(0, workers_.addresses);
  Stranger lifeline_{workers_.addresses[0], GetParam()};
  std::vector<Stranger> channels_;
  ConnectOutcome outcome_{Error{}, {}};
  std::thread connecting_;
};

TEST_P(LastWords, AGoodbyeIsNoDeathWhateverFollowsIt) {
  EXPECT_EQ(lost_after({kGoodbye, kBeat}), (LostPeer{2, How::kSilent}));
}

TEST_P(LastWords, AWorkerThatGaveUpLivesWhateverFollows) {
  EXPECT_EQ(lost_after({kBeat, kGaveUp, kGoodbye, kBeat}), (LostPeer{1, How::kRefused}));
}

TEST_P(LastWords, ADeathThatWasToldOfStaysOne) {
  EXPECT_EQ(lost_after({kDeathOf2, kGaveUp, kBeat}), (LostPeer{2, How::kClosed}));
}

TEST_P(LastWords, WithoutAnyItIsADeath) { EXPECT_EQ(lost_after({kBeat, kBeat}), (LostPeer{1, How::kClosed})); }

// A TCP connection that is closed with something unread is broken off, and takes what is still on its way along.
TEST_P(LastWords, OfATryThatFailsAreNotOvertakenByItsEnd) {
  lifeline_.say(kBeat);  // nobody reads it before all are connected
  workers_.connectors[0]->give_up(Generation{1}, 0);
  connecting_.join();
  const bool is_broken_off = call_error(lifeline_.stream().descriptor()) != 0;
  EXPECT_TRUE(!is_broken_off || GetParam() == Wire::kUnix);
  EXPECT_EQ(lifeline_.hear(), kGaveUp);
}

class SocketLifelines : public OverEachWire {};

// Within a host the end of a peer is told without them, and a peer that is stopped would not read them.
TEST_P(SocketLifelines, BeatBetweenHostsOnly) {
  HandmadePeer peer(GetParam());
  std::this_thread::sleep_for(1200ms);
  WordBytes word{};
  const iovec into{word.data(), word.size()};
  const StreamResult came = peer.streams.lifeline->read({&into, 1});
  EXPECT_EQ(came.kind, GetParam() == Wire::kUnix ? StreamResult::Kind::kBlocked : StreamResult::Kind::kMoved);
}

constexpr Wire kBoth[] = {Wire::kUnix, Wire::kTls};
INSTANTIATE_TEST_SUITE_P(, LastWords, testing::ValuesIn(kBoth), wire_name);
INSTANTIATE_TEST_SUITE_P(, SocketLifelines, testing::ValuesIn(kBoth), wire_name);

int user_timeout(int descriptor) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(::getsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &size), 0);
  return value;
}

// The TCP connections of this process, by their number for the kernel.
std::vector<int> tcp_connections() {
  std::vector<int> connections;
  for (int descriptor = 0; descriptor < 1024; ++descriptor) {
    SocketAddress peer;
    if (::getpeername(descriptor, peer.get(), &peer.size) != 0) continue;
    if (peer.storage.ss_family == AF_INET) connections.push_back(descriptor);
  }
  return connections;
}

// A channel that is not read for a while must not be given up.
TEST(SocketLifelinesBetweenHosts, AreGivenUpWhenAHostIsLostAndChannelsAreNot) {
  const HandmadePeer peer(Wire::kTls);
  std::vector<int> timeouts;
  for (const int connection : tcp_connections()) timeouts.push_back(user_timeout(connection));
  const auto lifelines = std::ranges::count(timeouts, 1800);
  const auto channels = std::ranges::count(timeouts, 0);
  EXPECT_EQ(lifelines, 2) << "one at each end";
  EXPECT_EQ(channels, 2 * kChannels);
  EXPECT_EQ(user_timeout(peer.streams.lifeline->descriptor()), 1800);
  for (const auto& channel : peer.streams.channels) EXPECT_EQ(user_timeout(channel->descriptor()), 0);
}

}  // namespace
}  // namespace everstep::trainer
