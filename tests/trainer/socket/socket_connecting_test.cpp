#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/relay.h"
#include "tests/trainer/socket/relayed_pair.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/peer_address.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using How = LostPeer::How;

class SocketConnecting : public OverEachWire {};

TEST_P(SocketConnecting, OneWorkerAloneNeedsNobody) {
  LoopbackWorkers workers(1, options_of(GetParam()));
  EXPECT_TRUE(workers.connect()[0].transport->close(1s));
}

TEST_P(SocketConnecting, NamesAPeerThatDoesNotConnect) {
  LoopbackWorkers workers(2, options_of(GetParam()));  // the second never calls
  const auto outcome = workers.connectors[0]->connect(test_roster(0, workers.addresses), 50ms);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 1 did not connect within 50 ms"));
  EXPECT_EQ(outcome.lost, (LostPeer{1, How::kSilent}));
}

TEST_P(SocketConnecting, AWorkerThatGaveUpIsNamedToThoseWhoHadMetIt) {
  LoopbackWorkers workers(3, options_of(GetParam()));
  ConnectOutcome patient{Error{}, {}};
  std::thread waiting([&] { patient = workers.connectors[0]->connect(test_roster(0, workers.addresses), kSoon); });
  // Worker 1 never connects; worker 2 has met worker 0 long before it gives up.
  EXPECT_FALSE(workers.connectors[2]->connect(test_roster(2, workers.addresses), 1s).connection);
  waiting.join();
  ASSERT_FALSE(patient.connection);
  EXPECT_EQ(patient.lost, (LostPeer{2, How::kRefused}));
}

TEST_P(SocketConnecting, NamesAPeerThatDoesNotAnswer) {
  LoopbackWorkers workers(2, options_of(GetParam()));  // the first parks the call
  const auto outcome = workers.connectors[1]->connect(test_roster(1, workers.addresses), 50ms);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(outcome.lost, (LostPeer{0, How::kSilent}));
}

TEST_P(SocketConnecting, NamesAPeerThatIsGoneWithoutWaiting) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  workers.connectors[0].reset();
  const auto outcome = workers.connectors[1]->connect(test_roster(1, workers.addresses), 1h);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 0 cannot be reached"));
  EXPECT_EQ(outcome.lost, (LostPeer{0, How::kClosed}));
}

TEST_P(SocketConnecting, NamesAPeerThatIsGoneBeforeItCalled) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  workers.connectors[1].reset();
  const auto outcome = workers.connectors[0]->connect(test_roster(0, workers.addresses), 1h);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 1 cannot be reached"));
  EXPECT_EQ(outcome.lost, (LostPeer{1, How::kClosed}));
}

// Somebody who answers and hangs up without a word, `often` times, and is gone then.
class HangsUp {
 public:
  HangsUp(Wire wire, int often) : worker_(wire), entrance_(worker_.entrance()) {
    thread_ = std::thread([this, often] {
      for (int i = 0; i < often;) {
        pollfd polled{entrance_.get(), POLLIN, 0};
        if (::poll(&polled, 1, std::chrono::milliseconds(kSoon).count()) <= 0) return;
        i += FileDescriptor(::accept4(entrance_.get(), nullptr, nullptr, SOCK_CLOEXEC)).is_open() ? 1 : 0;
      }
      entrance_.reset();
    });
  }
  ~HangsUp() { thread_.join(); }

  std::string address() const { return worker_.address(); }

 private:
  RelayedWorker worker_;
  FileDescriptor entrance_;
  std::thread thread_;
};

TEST_P(SocketConnecting, AWorkerThatDiesWhileItIsCalledIsGone) {
  const HangsUp dying(GetParam(), 1);
  LoopbackWorkers workers(1, options_of(GetParam()));
  const auto outcome = workers.connectors[0]->connect(test_roster(1, {dying.address(), workers.addresses[0]}), 1h);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kUnavailable) << outcome.connection.error();
  EXPECT_EQ(outcome.lost, (LostPeer{0, How::kClosed}));
}

// One that had too many callers takes the next call; one that never does is of no use.
TEST_P(SocketConnecting, SomebodyWhoHangsUpOnEveryCallIsGivenUp) {
  const HangsUp rude(GetParam(), 9);
  LoopbackWorkers workers(1, options_of(GetParam()));
  const auto outcome = workers.connectors[0]->connect(test_roster(1, {rude.address(), workers.addresses[0]}), 1h);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kUnavailable) << outcome.connection.error();
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 0 hung up before it said who it is"));
  EXPECT_EQ(outcome.lost, (LostPeer{0, How::kClosed}));
}

// That says nothing about who lives: many may call at once, or the called one be stopped for a while.
TEST(SocketConnectingWithinAHost, AWorkerWhoseQueueOfCallersIsFullIsCalledAgain) {
  RelayedPair pair(Wire::kUnix);
  FileDescriptor entrance = pair.called.entrance();
  ASSERT_EQ(::listen(entrance.get(), 0), 0);
  const std::string called = parse_peer_address(pair.called.address())->local->path;
  std::vector<FileDescriptor> callers;
  do callers.push_back(call_unix(called).value());
  while (callers.back().is_open());
  std::optional<Relay> relay;
  std::thread later([&] {
    std::this_thread::sleep_for(300ms);
    const std::string own = pair.called.own_address().local->path;
    relay.emplace(std::move(entrance), [own] { return call_unix(own).value(); });
  });
  const auto outcome = pair.connect();
  later.join();
  EXPECT_TRUE(outcome.called.connection) << outcome.called.connection.error();
  EXPECT_TRUE(outcome.caller.connection) << outcome.caller.connection.error();
}

TEST_P(SocketConnecting, AWorkerThatDiesWhileOthersConnectIsNamedToAll) {
  LoopbackWorkers workers(4, options_of(GetParam()));
  workers.connectors[0].reset();  // workers 2 and 3 call it, and tell worker 1 what they saw
  std::vector<ConnectOutcome> outcomes;
  for (int i = 0; i < 3; ++i) outcomes.push_back({Error{}, {}});
  std::vector<std::thread> threads;
  for (int worker = 1; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      outcomes[worker - 1] = workers.connectors[worker]->connect(test_roster(worker, workers.addresses), 1h);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ConnectOutcome& outcome : outcomes) {
    EXPECT_FALSE(outcome.connection);
    ASSERT_TRUE(outcome.lost);
    EXPECT_EQ(outcome.lost->worker, 0);
  }
}

TEST_P(SocketConnecting, GivingUpEndsAConnectAtOnce) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  std::thread impatient([&] {
    std::this_thread::sleep_for(50ms);
    workers.connectors[1]->give_up(Generation{1}, 0);
  });
  const auto before = std::chrono::steady_clock::now();
  const auto outcome = workers.connectors[1]->connect(test_roster(1, workers.addresses), 1h);
  impatient.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kCancelled);
}

TEST_P(SocketConnecting, ATryThatWasGivenUpBeforeItBeganEndsAtOnce) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  workers.connectors[0]->give_up(Generation{1}, 0);
  const auto outcome = workers.connectors[0]->connect(test_roster(0, workers.addresses), 1h);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kCancelled);
  const auto caller = workers.connectors[1]->connect(test_roster(1, workers.addresses), 1h);
  EXPECT_EQ(caller.connection.error().code, ErrorCode::kStaleGeneration);
  EXPECT_EQ(caller.lost, (LostPeer{0, How::kRefused}));
}

TEST_P(SocketConnecting, CallsOfANewerGenerationWaitUntilThisWorkerConnectsToo) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  const auto old = workers.connect(1);
  ConnectOutcome early{Error{}, {}};
  std::thread eager([&] { early = workers.connectors[1]->connect(test_roster(1, workers.addresses, 2), kSoon); });
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(old[0].transport->status());
  const auto late = workers.connectors[0]->connect(test_roster(0, workers.addresses, 2), kSoon);
  eager.join();
  EXPECT_TRUE(late.connection) << late.connection.error();
  EXPECT_TRUE(early.connection) << early.connection.error();
  EXPECT_EQ(workers.connectors[0]->fenced(), 0);
}

TEST_P(SocketConnecting, CallsOfOlderGenerationsAndTriesAreFencedAndCounted) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  const auto present = workers.connect(5);
  for (const auto& [generation, nonce] : {std::pair{4, 0U}, std::pair{5, 0U}}) {
    LoopbackWorkers stale(1, options_of(GetParam()));  // as worker 1 would call if it were late
    const PeerRoster roster = test_roster(1, {workers.addresses[0], stale.addresses[0]}, generation, nonce);
    const auto outcome = stale.connectors[0]->connect(roster, kSoon);
    EXPECT_EQ(outcome.connection.error().code, ErrorCode::kStaleGeneration) << outcome.connection.error();
    EXPECT_EQ(outcome.lost, (LostPeer{0, How::kRefused}));
  }
  EXPECT_EQ(workers.connectors[0]->fenced(), 2);
  EXPECT_TRUE(present[0].transport->status()) << "the present transport must not notice";
  EXPECT_EQ(workers.connectors[0]->connect(test_roster(0, workers.addresses, 4), 1s).connection.error().code,
            ErrorCode::kStaleGeneration);
}

TEST_P(SocketConnecting, AnotherIncarnationIsRefused) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  PeerRoster roster = test_roster(1, workers.addresses);
  roster.members[1].id = test_worker_id(99);
  ConnectOutcome first{Error{}, {}};
  std::thread other([&] { first = workers.connectors[0]->connect(test_roster(0, workers.addresses), 300ms); });
  const auto impostor = workers.connectors[1]->connect(roster, kSoon);
  other.join();
  EXPECT_EQ(impostor.connection.error().code, ErrorCode::kStaleGeneration);
  EXPECT_EQ(first.connection.error().code, ErrorCode::kDeadlineExceeded);
}

INSTANTIATE_TEST_SUITE_P(, SocketConnecting, testing::Values(Wire::kUnix, Wire::kTls), wire_name);

}  // namespace
}  // namespace everstep::trainer
