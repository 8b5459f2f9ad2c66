#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/ucx/loopback_workers.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using How = LostPeer::How;

// The local addresses, as the kernel writes them, at which this process accepts TCP connections.
std::set<std::string> listening_addresses() {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry, gone).string();
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::string> addresses;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string slot, local, remote, state, skip, inode;
      fields >> slot >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skip;
      fields >> inode;
      if (state == "0A" && sockets.contains(inode)) addresses.insert(local);
    }
  }
  return addresses;
}

std::uint16_t port_of(const UcxListener& listener) { return parse_lifeline_address(listener.address())->port; }

TEST(UcxListener, ListensOnLoopbackOnly) {
  LoopbackWorkers workers(2);
  const auto connections = workers.connect();
  EXPECT_THAT(listening_addresses(), testing::Each(testing::StartsWith("0100007F:")));
}

TEST(UcxListener, NamesAPortThatIsInUse) {
  const auto first = UcxListener::listen({}).value();
  const auto second = UcxListener::listen({.first_port = port_of(*first)});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(second.error().message, HasSubstr("port " + std::to_string(port_of(*first)) + " of 127.0.0.1 is in use"));
}

TEST(UcxListener, TakesTheFirstFreePortOfARange) {
  const auto first = UcxListener::listen({}).value();
  const std::uint16_t taken = port_of(*first);
  const auto last = static_cast<std::uint16_t>(std::min(taken + 20, 65535));
  const auto second = UcxListener::listen({.first_port = taken, .last_port = last});
  ASSERT_TRUE(second) << second.error();
  EXPECT_GT(port_of(**second), taken);
  EXPECT_LE(port_of(**second), last);
}

TEST(UcxListener, NamesARangeWithoutAFreePort) {
  // Two neighbours that this test holds itself: wherever they are, both are taken.
  std::unique_ptr<UcxListener> low;
  std::unique_ptr<UcxListener> high;
  for (int tries = 0; tries < 100 && !high; ++tries) {
    low = UcxListener::listen({}).value();
    auto next = UcxListener::listen({.first_port = static_cast<std::uint16_t>(port_of(*low) + 1)});
    if (next) high = std::move(next).value();
  }
  ASSERT_TRUE(high);
  const auto third = UcxListener::listen({.first_port = port_of(*low), .last_port = port_of(*high)});
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(third.error().message, HasSubstr("every port from " + std::to_string(port_of(*low)) + " to " +
                                               std::to_string(port_of(*high)) + " of 127.0.0.1 is in use"));
}

TEST(UcxListener, TellsTheAddressThatItIsToAdvertise) {
  const auto listener = UcxListener::listen({.advertise = "10.1.2.3"}).value();
  EXPECT_THAT(listener->address(), testing::StartsWith("10.1.2.3:"));
}

TEST(UcxListener, RefusesAddressesThatAreNotThisMachines) {
  for (const char* bind : {"203.0.113.1", "localhost", "", "0.0.0.0"}) {
    const auto listener = UcxListener::listen({.bind = bind});
    ASSERT_FALSE(listener) << bind;
    EXPECT_EQ(listener.error().code, ErrorCode::kInvalidArgument);
  }
}

TEST(UcxListener, RefusesAddressesThatAreNone) {
  const auto listener = UcxListener::listen({}).value();
  for (const char* address : {"", "nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:70000",
                              "127.0.0.1:1x", "localhost:1", "127.0.0.1:01", "::1:5"}) {
    const auto outcome = listener->connect(test_group(0, {listener->address(), address}), 1s);
    EXPECT_EQ(outcome.connection.error().code, ErrorCode::kInvalidArgument) << address;
  }
}

TEST(UcxListener, OneWorkerAloneNeedsNobody) {
  LoopbackWorkers workers(1);
  EXPECT_TRUE(workers.connect()[0].transport->close(1s));
}

TEST(UcxListener, NamesAPeerThatDoesNotConnect) {
  LoopbackWorkers workers(2);  // the second never calls
  const auto outcome = workers.listeners[0]->connect(test_group(0, workers.addresses), 50ms);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 1 did not connect within 50 ms"));
  EXPECT_EQ(outcome.lost, (LostPeer{1, How::kSilent}));
}

// A peer that got its address, and reached for an engine that goes at that very moment, would not survive it.
TEST(UcxListener, StaysReachableForAWhileAfterATryThatFailed) {
  LoopbackWorkers workers(2);
  const std::set<std::string> before = listening_addresses();
  ASSERT_FALSE(workers.listeners[0]->connect(test_group(0, workers.addresses), 50ms).connection);
  EXPECT_GT(listening_addresses().size(), before.size());
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (listening_addresses() != before && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(listening_addresses(), before);
}

TEST(UcxListener, AWorkerThatGaveUpIsNamedToThoseWhoHadMetIt) {
  LoopbackWorkers workers(3);
  UcxOutcome patient{Error{}, {}};
  std::thread waiting([&] { patient = workers.listeners[0]->connect(test_group(0, workers.addresses), 10s); });
  EXPECT_FALSE(workers.listeners[2]->connect(test_group(2, workers.addresses), 200ms).connection);
  EXPECT_FALSE(workers.listeners[1]->connect(test_group(1, workers.addresses), 200ms).connection);
  waiting.join();
  ASSERT_FALSE(patient.connection);
  EXPECT_EQ(patient.lost, (LostPeer{2, How::kRefused}));
}

TEST(UcxListener, NamesAPeerThatDoesNotAnswer) {
  LoopbackWorkers workers(2);  // the first parks the call
  const auto outcome = workers.listeners[1]->connect(test_group(1, workers.addresses), 50ms);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kDeadlineExceeded);
  EXPECT_EQ(outcome.lost, (LostPeer{0, How::kSilent}));
}

TEST(UcxListener, NamesAPeerThatIsGoneWithoutWaiting) {
  LoopbackWorkers workers(2);
  workers.listeners[0].reset();
  const auto outcome = workers.listeners[1]->connect(test_group(1, workers.addresses), 1h);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 0 cannot be reached"));
  EXPECT_EQ(outcome.lost, (LostPeer{0, How::kClosed}));
}

TEST(UcxListener, NamesAPeerThatIsGoneBeforeItCalled) {
  LoopbackWorkers workers(2);
  workers.listeners[1].reset();
  const auto outcome = workers.listeners[0]->connect(test_group(0, workers.addresses), 1h);
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(outcome.connection.error().message, HasSubstr("worker 1 cannot be reached"));
  EXPECT_EQ(outcome.lost, (LostPeer{1, How::kClosed}));
}

TEST(UcxListener, AWorkerThatDiesWhileOthersConnectIsNamedToAll) {
  LoopbackWorkers workers(4);
  workers.listeners[0].reset();  // workers 2 and 3 call it, and tell worker 1 what they saw
  std::vector<UcxOutcome> outcomes;
  for (int i = 0; i < 3; ++i) outcomes.push_back({Error{}, {}});
  std::vector<std::thread> threads;
  for (int worker = 1; worker < 4; ++worker) {
    threads.emplace_back([&, worker] {
      outcomes[worker - 1] = workers.listeners[worker]->connect(test_group(worker, workers.addresses), 1h);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const UcxOutcome& outcome : outcomes) {
    EXPECT_FALSE(outcome.connection);
    ASSERT_TRUE(outcome.lost);
    EXPECT_EQ(outcome.lost->worker, 0);
  }
}

TEST(UcxListener, GivingUpEndsAConnectAtOnce) {
  LoopbackWorkers workers(2);
  std::thread impatient([&] {
    std::this_thread::sleep_for(50ms);
    workers.listeners[1]->give_up(Generation{1}, 0);
  });
  const auto before = std::chrono::steady_clock::now();
  const auto outcome = workers.listeners[1]->connect(test_group(1, workers.addresses), 1h);
  impatient.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, 5s);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kCancelled);
}

TEST(UcxListener, ATryThatWasGivenUpBeforeItBeganEndsAtOnce) {
  LoopbackWorkers workers(2);
  workers.listeners[0]->give_up(Generation{1}, 0);
  const auto outcome = workers.listeners[0]->connect(test_group(0, workers.addresses), 1h);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kCancelled);
  const auto caller = workers.listeners[1]->connect(test_group(1, workers.addresses), 1h);
  EXPECT_EQ(caller.connection.error().code, ErrorCode::kStaleGeneration);
  EXPECT_EQ(caller.lost, (LostPeer{0, How::kRefused}));
}

TEST(UcxListener, CallsOfANewerGenerationWaitUntilThisWorkerConnectsToo) {
  LoopbackWorkers workers(2);
  const auto old = workers.connect(1);
  UcxOutcome early{Error{}, {}};
  std::thread eager([&] { early = workers.listeners[1]->connect(test_group(1, workers.addresses, 2), 10s); });
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(old[0].transport->status());
  const auto late = workers.listeners[0]->connect(test_group(0, workers.addresses, 2), 10s);
  eager.join();
  EXPECT_TRUE(late.connection) << late.connection.error();
  EXPECT_TRUE(early.connection) << early.connection.error();
  EXPECT_EQ(workers.listeners[0]->fenced(), 0);
}

TEST(UcxListener, CallsOfOlderGenerationsAndTriesAreFencedAndCounted) {
  LoopbackWorkers workers(2);
  const auto present = workers.connect(5);
  for (const auto& [generation, nonce] : {std::pair{4, 0U}, std::pair{5, 0U}}) {
    auto stale = UcxListener::listen({}).value();  // as worker 1 would call if it were late
    const UcxGroup group = test_group(1, {workers.addresses[0], stale->address()}, generation, nonce);
    const auto outcome = stale->connect(group, 10s);
    EXPECT_EQ(outcome.connection.error().code, ErrorCode::kStaleGeneration) << outcome.connection.error();
    EXPECT_EQ(outcome.lost, (LostPeer{0, How::kRefused}));
  }
  EXPECT_EQ(workers.listeners[0]->fenced(), 2);
  EXPECT_TRUE(present[0].transport->status()) << "the present transport must not notice";
  EXPECT_EQ(workers.listeners[0]->connect(test_group(0, workers.addresses, 4), 1s).connection.error().code,
            ErrorCode::kStaleGeneration);
}

TEST(UcxListener, AnotherIncarnationIsRefused) {
  LoopbackWorkers workers(2);
  UcxGroup group = test_group(1, workers.addresses);
  group.members[1].id = test_worker_id(99);
  UcxOutcome first{Error{}, {}};
  std::thread other([&] { first = workers.listeners[0]->connect(test_group(0, workers.addresses), 300ms); });
  const auto impostor = workers.listeners[1]->connect(group, 10s);
  other.join();
  EXPECT_EQ(impostor.connection.error().code, ErrorCode::kStaleGeneration);
  EXPECT_EQ(first.connection.error().code, ErrorCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace everstep::trainer
