#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/relayed_pair.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

// What somebody on the way between two workers can do.
namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Direction = Relay::Direction;

class SocketTampering : public OverEachWire {};

TEST_P(SocketTampering, ARelayThatHandsOnWhatItHearsIsNoObstacle) {
  RelayedPair pair(GetParam());
  std::atomic<int> calls{0};
  const auto relay =
      pair.called.relay([&](const Relay::Passing& passing) { calls = std::max(calls.load(), passing.call + 1); });
  const auto outcome = pair.connect();
  ASSERT_TRUE(outcome.is_connected());
  const std::string payload(300'000, 'p');
  EXPECT_EQ(deliver(outcome, payload).value(), payload);
  EXPECT_EQ(calls, 1 + kChannels) << "all of it goes through the relay";
}

// Changes one byte of one call at a time.
struct Flip {
  int call = 0;
  Direction direction = Relay::kToCalled;
  std::size_t at = 0;
};

class Flipper {
 public:
  void next(const Flip& flip) {
    const std::lock_guard lock(mutex_);
    flip_ = flip;
    first_call_ = calls_;
    has_flipped_ = false;
  }
  void rest() { next({-1}); }
  bool has_flipped() {
    const std::lock_guard lock(mutex_);
    return has_flipped_;
  }
  int calls() {  // since next()
    const std::lock_guard lock(mutex_);
    return calls_ - first_call_;
  }

  void operator()(const Relay::Passing& passing) {
    const std::lock_guard lock(mutex_);
    calls_ = std::max(calls_, passing.call + 1);
    if (passing.call - first_call_ != flip_.call || passing.direction != flip_.direction) return;
    if (flip_.at < passing.before || flip_.at >= passing.before + passing.bytes.size()) return;
    passing.bytes[flip_.at - passing.before] ^= static_cast<char>(1 << (flip_.at % 8));
    has_flipped_ = true;
  }

 private:
  std::mutex mutex_;  // guards all below
  Flip flip_{-1};
  int calls_ = 0;
  int first_call_ = 0;
  bool has_flipped_ = false;
};

// Flips each `step`th byte of a call's handshake until there are no more of them. A few bytes mean nothing (such as the
// version that a record of TLS claims); with these changed a connection may come off, and must be as good as any.
class SocketFlips : public OverEachWire {
 protected:
  void flip_all(int call, Direction direction, std::size_t step) {
    Flipper flipper;
    const auto relay = pair_.called.relay([&](const Relay::Passing& passing) { flipper(passing); });
    int harmless = 0;
    std::size_t flips = 0;
    for (std::size_t at = 0;; at += step, ++flips) {
      flipper.next({call, direction, at});
      const auto outcome = pair_.connect(kTry);
      if (outcome.is_connected()) {
        EXPECT_EQ(deliver(outcome, kPayload).value(), kPayload) << "byte " << at;
        if (!flipper.has_flipped()) break;
        if (flipper.calls() == 1 + kChannels) ++harmless;  // else one was hung up on, and made again
      } else {
        EXPECT_FALSE(outcome.caller.connection) << "byte " << at;
        // The last welcome of all may be changed when the called side has done its part.
        EXPECT_TRUE(!outcome.called.connection || is_of_no_use(*outcome.called.connection->transport)) << "byte " << at;
      }
      flipper.rest();
      const auto retry = pair_.connect();
      ASSERT_TRUE(retry.is_connected()) << "after byte " << at << ": " << retry.caller.connection.error();
    }
    std::cout << flips << " bytes, of which " << harmless << " mean nothing\n";
    EXPECT_GT(flips, 30 / step);
    EXPECT_LE(harmless, 8);
  }

 private:
  // Its peer is gone or has said goodbye.
  static bool is_of_no_use(Transport& transport) {
    return comes_true([&] {
      transport.send(1, Channel::kTensors, FrameHeader(), {});
      return !transport.status();
    });
  }

  // For a caller that waits for bytes that never come, since a length was changed.
  static constexpr auto kTry = 250ms;
  const std::string kPayload = "a frame after it all";

  RelayedPair pair_{GetParam()};
};

TEST_P(SocketFlips, OfACallersWordsAreNeverBelieved) { flip_all(0, Relay::kToCalled, 1); }
TEST_P(SocketFlips, OfTheAnswersAreNeverBelieved) { flip_all(0, Relay::kToCaller, 1); }
TEST_P(SocketFlips, OfWhatACallerSaysForAChannelAreNeverBelieved) { flip_all(2, Relay::kToCalled, 13); }
TEST_P(SocketFlips, OfTheAnswersForAChannelAreNeverBelieved) { flip_all(2, Relay::kToCaller, 13); }

// Frames over TLS: each record says whether it is whole. (Over AF_UNIX nobody is in between.)
TEST(SocketFrameFlips, AreNeverDelivered) {
  const std::string payload(100'000, 'p');
  std::size_t handshake = 0;
  {
    RelayedPair pair(Wire::kTls);
    std::atomic<std::size_t> passed{0};
    const auto relay = pair.called.relay([&](const Relay::Passing& passing) {
      if (passing.call == 1 && passing.direction == Relay::kToCalled) passed += passing.bytes.size();
    });
    ASSERT_TRUE(pair.connect().is_connected());
    handshake = passed;
  }
  for (const std::size_t at : {0, 2, 4, 5, 60, 120, 16'000, 16'405, 50'000, 99'999, 100'200}) {
    RelayedPair pair(Wire::kTls);
    Flipper flipper;
    flipper.next({1, Relay::kToCalled, handshake + at});
    const auto relay = pair.called.relay([&](const Relay::Passing& passing) { flipper(passing); });
    const auto outcome = pair.connect();
    ASSERT_TRUE(outcome.is_connected());
    const auto delivered = deliver(outcome, payload, 5s);
    EXPECT_TRUE(flipper.has_flipped()) << at;
    ASSERT_FALSE(delivered) << "byte " << at;
    EXPECT_THAT(delivered.error().code, testing::AnyOf(ErrorCode::kUnavailable, ErrorCode::kDeadlineExceeded)) << at;
  }
}

// Records of TLS have no numbers on them, but they are counted.
TEST(SocketFrameFlips, RecordsThatAreDroppedOrSaidTwiceBreakTheConnection) {
  for (const bool twice : {false, true}) {
    RelayedPair pair(Wire::kTls);
    std::atomic<bool> meddles{false};
    const auto relay = pair.called.relay([&](const Relay::Passing& passing) {
      if (passing.call != 1 || passing.direction != Relay::kToCalled || !meddles) return;
      meddles = false;
      passing.bytes = twice ? passing.bytes + passing.bytes : "";
    });
    const auto outcome = pair.connect();
    ASSERT_TRUE(outcome.is_connected());
    meddles = true;
    EXPECT_EQ(deliver(outcome, "first", twice ? kSoon : 300ms).ok(), twice);
    EXPECT_FALSE(deliver(outcome, "other"));
  }
}

INSTANTIATE_TEST_SUITE_P(, SocketTampering, testing::ValuesIn(kAllWires), wire_name);
INSTANTIATE_TEST_SUITE_P(, SocketFlips, testing::Values(Wire::kUnix, Wire::kTls), wire_name);

}  // namespace
}  // namespace everstep::trainer
