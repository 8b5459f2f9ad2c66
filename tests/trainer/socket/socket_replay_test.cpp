#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/trainer/socket/relayed_pair.h"
#include "tests/trainer/socket/running_job.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

// What somebody can do with the words of honest workers: say them again, to the same or to another.
namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class SocketReplay : public OverEachWire {};

// All that a caller said, one text for each of its calls.
class Recorder {
 public:
  Relay::Meddler hook() {
    return [this](const Relay::Passing& passing) {
      const std::lock_guard lock(mutex_);
      if (passing.direction != Relay::kToCalled) return;
      said_.resize(std::max(said_.size(), static_cast<std::size_t>(passing.call) + 1));
      said_[passing.call] += passing.bytes;
    };
  }
  std::vector<std::string> said() {
    const std::lock_guard lock(mutex_);
    return said_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> said_;
};

TEST_P(SocketReplay, RecordedCallsAreRefusedWhileTheirTryIsOpenAndAfterwards) {
  RelayedPair pair(GetParam());
  Recorder recorder;
  const auto relay = pair.called.relay(recorder.hook());
  const auto honest = pair.connect();
  ASSERT_TRUE(honest.is_connected());
  const std::vector<std::string> recorded = recorder.said();
  ASSERT_EQ(recorded.size(), 1 + kChannels);
  const auto replay_all = [&] {
    for (const std::string& said : recorded) {
      const FileDescriptor thief = call(to_text(pair.called.own_address()));
      say(thief, said);
      EXPECT_TRUE(hangs_up(thief));
    }
  };
  replay_all();  // the try is over

  // A try that waits for its worker 1: the same generation, and another nonce.
  const std::vector<std::string> addresses{pair.called.address(), pair.caller.addresses[0]};
  ConnectOutcome first{Error{}, {}};
  std::thread connecting([&] { first = pair.called.connector().connect(test_roster(0, addresses, 1, 99), kSoon); });
  replay_all();
  const auto second = pair.caller.connectors[0]->connect(test_roster(1, addresses, 1, 99), kSoon);
  connecting.join();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
  const std::string payload = "still here";
  EXPECT_EQ(deliver(honest, payload).value(), payload);
}

// The words of a try are played into the very same try, while the honest caller is still on its way.
TEST_P(SocketReplay, WordsSaidTwiceWithinOneTryOpenNothing) {
  LogLines log;
  RelayedPair pair(GetParam(), log.hook());
  FileDescriptor thief;
  const auto relay = pair.called.relay([&](const Relay::Passing& passing) {
    if (passing.call != 0 || passing.direction != Relay::kToCalled) return;
    if (!thief.is_open()) thief = call(to_text(pair.called.own_address()));
    say(thief, passing.bytes);
  });
  const auto honest = pair.connect();
  ASSERT_TRUE(honest.is_connected());
  EXPECT_TRUE(hangs_up(thief));
  EXPECT_TRUE(log.comes("connection_refused"));
  EXPECT_EQ(deliver(honest, "a frame").value(), "a frame");
}

// A caller hears its own call.
TEST_P(SocketReplay, ACallThatIsThrownBackAtItsCallerIsRefused) {
  LogLines log;
  RelayedPair pair(GetParam(), {}, log.hook());
  const auto mirror = pair.called.relay_to(parse_peer_address(pair.caller.addresses[0]).value());
  const auto outcome = pair.connect(10s);
  EXPECT_TRUE(outcome.has_failed());
  EXPECT_THAT(outcome.caller.connection.error().code,
              testing::AnyOf(ErrorCode::kStaleGeneration, ErrorCode::kInvalidArgument));
  EXPECT_EQ(outcome.caller.lost, (LostPeer{0, LostPeer::How::kRefused}));
  EXPECT_TRUE(log.comes("connection_refused"));
}

// Three workers: what the others say to the first is led to the second.
TEST_P(SocketReplay, ACallForOneWorkerIsRefusedByAnother) {
  RelayedWorker first(GetParam());
  LoopbackWorkers others(2, options_of(GetParam()));
  const auto relay = first.relay_to(parse_peer_address(others.addresses[0]).value());
  const std::vector<std::string> addresses{first.address(), others.addresses[0], others.addresses[1]};
  ConnectOutcome second{Error{}, {}};
  std::thread connecting([&] { second = others.connectors[0]->connect(test_roster(1, addresses), kSoon); });
  const auto third = others.connectors[1]->connect(test_roster(2, addresses), kSoon);
  others.connectors[0]->give_up(Generation{1}, 0);
  connecting.join();
  EXPECT_FALSE(second.connection);
  EXPECT_FALSE(third.connection);
  EXPECT_EQ(third.lost->how, LostPeer::How::kRefused) << third.connection.error();
}

// Ends TLS on both sides with a certificate of the right authority, and hands on what is said inside.
class ManInTheMiddle {
 public:
  ManInTheMiddle(FileDescriptor entrance, TcpAddress target, const std::string& known)
      : entrance_(std::move(entrance)),
        tls_(TlsContext::make(seal_with("another secret"), test_certificates()).value()) {
    thread_ = std::thread([this, target, known] { run(target, known); });
  }
  ~ManInTheMiddle() { thread_.join(); }

 private:
  void run(const TcpAddress& target, const std::string& known) {
    pollfd polled{entrance_.get(), POLLIN, 0};
    ::poll(&polled, 1, std::chrono::milliseconds(kSoon).count());
    FileDescriptor socket(::accept4(entrance_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const auto caller = tls_->answer(std::move(socket), {kTestLineage, known});
    const auto called = tls_->call(call_tcp(target).value(), {kTestLineage, known});
    EXPECT_TRUE(negotiate(*caller));
    EXPECT_TRUE(negotiate(*called));
    while (pass(*caller, *called) && pass(*called, *caller)) {
      std::array<pollfd, 2> both{pollfd{caller->descriptor(), POLLIN, 0}, pollfd{called->descriptor(), POLLIN, 0}};
      ::poll(both.data(), both.size(), 100);
    }
  }

  static bool pass(ByteStream& from, ByteStream& to) {
    std::array<char, 4096> bytes{};
    const iovec into{bytes.data(), bytes.size()};
    const StreamResult came = from.read({&into, 1});
    if (came.moved()) write_all(to, {bytes.data(), came.bytes});
    return came.moved() || came.kind == StreamResult::Kind::kBlocked;
  }

  FileDescriptor entrance_;
  std::unique_ptr<TlsContext> tls_;
  std::thread thread_;
};

TEST(SocketManInTheMiddle, WithACertificateAndNoSecretIsRefusedByBothSides) {
  LogLines called;
  LogLines caller;
  RelayedPair pair(Wire::kCertificates, called.hook(), caller.hook());
  {
    ManInTheMiddle man(pair.called.entrance(), *pair.called.own_address().tcp, pair.called.address());
    const auto outcome = pair.connect(10s);
    EXPECT_TRUE(outcome.has_failed());
    EXPECT_EQ(outcome.caller.connection.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(outcome.caller.connection.error().message, HasSubstr("does not have this job's secret"));
    EXPECT_TRUE(caller.comes("its proof does not fit"));
  }
  const auto relay = pair.called.relay();
  EXPECT_TRUE(pair.connect().is_connected()) << "without it the two connect";
}

INSTANTIATE_TEST_SUITE_P(, SocketReplay, testing::ValuesIn(kAllWires), wire_name);

}  // namespace
}  // namespace everstep::trainer
