#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "base/random.h"
#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/relayed_pair.h"
#include "tests/trainer/socket/running_job.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"
#include "trainer/socket/call_port.h"

// What somebody can do who reaches the address of a worker, and has nothing else.
namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;

std::string noise(std::uint64_t seed, std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(RandomStream(seed, 1).below(i, 256));
  return text;
}

// The first words of somebody who speaks the protocol of this wire: a hello, over TLS behind one of its own.
std::string recorded_hello(Wire wire) {
  RelayedWorker worker(wire);
  std::string said;
  const auto relay = worker.relay([&](const Relay::Passing& passing) {
    if (passing.direction == Relay::kToCalled) said += passing.bytes;
    passing.bytes.clear();  // so there is no answer
  });
  LoopbackWorkers caller(1, options_of(wire));
  static_cast<void>(caller.connectors[0]->connect(test_roster(1, {worker.address(), caller.addresses[0]}), 200ms));
  return said;
}

class SocketStrangers : public OverEachWire {
 protected:
  // Whether two honest workers connect, however long it takes.
  static void expect_honest_workers_connect(LoopbackWorkers& workers, std::int64_t generation = 1) {
    const auto outcomes = workers.try_to_connect(generation, kSoon);
    for (const ConnectOutcome& outcome : outcomes) EXPECT_TRUE(outcome.connection) << outcome.connection.error();
  }
};

TEST_P(SocketStrangers, NoiseIsHungUpOnAndLogged) {
  LogLines log;
  LoopbackWorkers workers(2, options_of(GetParam(), log.hook()));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const FileDescriptor noisy = call(workers.addresses[0]);
    say(noisy, noise(seed, 1000));
    EXPECT_TRUE(hangs_up(noisy));
  }
  EXPECT_TRUE(log.comes("connection_refused"));
  expect_honest_workers_connect(workers);
}

TEST_P(SocketStrangers, WhoeverIsSilentOrStopsMidwayIsLetGoAfterAWhile) {
  const std::string hello = recorded_hello(GetParam());
  ASSERT_GE(hello.size(), kHelloBytes);
  LogLines log;
  LoopbackWorkers workers(2, options_of(GetParam(), log.hook()));
  std::vector<FileDescriptor> callers;
  for (const std::size_t said : {std::size_t{0}, std::size_t{1}, std::size_t{5}, hello.size() / 2, hello.size() - 1}) {
    callers.push_back(call(workers.addresses[0]));
    say(callers.back(), hello.substr(0, said));
  }
  expect_honest_workers_connect(workers);
  for (const FileDescriptor& caller : callers) EXPECT_TRUE(hangs_up(caller));
  EXPECT_TRUE(log.comes("it did not say who it is"));
}

// Each byte is a sign of life, and yet none of them buys any time.
TEST_P(SocketStrangers, WhoeverSpeaksOneByteAtATimeIsLetGoAllTheSame) {
  const std::string hello = recorded_hello(GetParam());
  LoopbackWorkers workers(1, options_of(GetParam()));
  const FileDescriptor slow = call(workers.addresses[0]);
  const auto pause = std::chrono::milliseconds(4 * kTimeToIntroduce) / hello.size();
  std::size_t said = 0;
  while (said < hello.size() && is_quiet(slow)) {
    say(slow, {&hello[said++], 1});
    std::this_thread::sleep_for(pause);
  }
  EXPECT_LT(said, hello.size());
  EXPECT_TRUE(hangs_up(slow));
}

// The kernel's queue of callers is emptied in one go; whoever has said all that it has to needs no slot.
TEST_P(SocketStrangers, HundredsOfBadCallsAtOnceDoNotKeepAnHonestOneOut) {
  LogLines log;
  LoopbackWorkers workers(2, options_of(GetParam(), log.hook()));
  std::vector<FileDescriptor> callers;
  for (std::uint64_t i = 0; i < 400; ++i) {
    callers.push_back(call(workers.addresses[i % 2]));
    if (i % 3 != 0) say(callers.back(), noise(i, i % 200));
  }
  expect_honest_workers_connect(workers);
}

TEST_P(SocketStrangers, TheOldestHasToGoWhenThereAreTooMany) {
  LogLines log;
  LoopbackWorkers workers(1, options_of(GetParam(), log.hook()));
  std::vector<FileDescriptor> silent;
  for (std::size_t i = 0; i < kMostStrangers + 10; ++i) silent.push_back(call(workers.addresses[0]));
  for (std::size_t i = 0; i < 10; ++i) EXPECT_TRUE(hangs_up(silent[i]));
  EXPECT_TRUE(log.comes("too many callers have not said who they are"));
  EXPECT_EQ(log.count("too many callers have not said who they are"), 10);
}

// Each flood is much longer than a connection takes, but it ends: on a machine where the flood alone gets time, whoever
// is honest gets in behind it.
TEST_P(SocketStrangers, AFloodThatGoesOnDoesNotKeepAnHonestOneOut) {
  constexpr int kCallsPerFlood = 5000;
  LoopbackWorkers workers(2, options_of(GetParam()));
  for (std::int64_t generation = 1; generation <= 10; ++generation) {
    std::atomic<bool> stopping{false};
    std::atomic<int> calls{0};
    std::thread flood([&] {  // thousands a second, as one that is not on this machine could
      std::vector<FileDescriptor> silent(500);
      while (!stopping && calls < kCallsPerFlood) {
        silent[calls % silent.size()] = call(workers.addresses[calls % 2]);
        if (++calls % 10 == 0) std::this_thread::sleep_for(2ms);
      }
    });
    EXPECT_TRUE(comes_true([&] { return calls > 500; }));
    expect_honest_workers_connect(workers, generation);
    stopping = true;
    flood.join();
  }
}

TEST_P(SocketStrangers, AFloodCostsARunningJobNothing) {
  LogLines log;
  RunningJob job(options_of(GetParam(), log.hook()));
  std::vector<FileDescriptor> callers;
  for (std::uint64_t i = 0; i < 300; ++i) {
    callers.push_back(call(job.address()));
    say(callers.back(), noise(i, i));
  }
  EXPECT_TRUE(job.finish());
}

// Strangers can make a worker write, but not without end.
TEST_P(SocketStrangers, RefusalsAreLoggedSparingly) {
  LogLines log;
  LoopbackWorkers workers(1, options_of(GetParam(), log.hook()));
  const auto start = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < 300; ++i) {
    const FileDescriptor noisy = call(workers.addresses[0]);
    say(noisy, std::string(300, 'x'));
    EXPECT_TRUE(hangs_up(noisy));
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - start);
  EXPECT_GE(log.count("connection_refused"), 15);
  EXPECT_LE(std::ssize(log.lines()), 25 + seconds.count());
}

// One that calls and hangs up wants to know who lives; peers do that all the time.
TEST_P(SocketStrangers, AKnockIsNotLogged) {
  LogLines log;
  LoopbackWorkers workers(1, options_of(GetParam(), log.hook()));
  for (int i = 0; i < 50; ++i) call(workers.addresses[0]).reset();
  const FileDescriptor noisy = call(workers.addresses[0]);
  say(noisy, std::string(300, 'x'));
  EXPECT_TRUE(hangs_up(noisy));
  EXPECT_TRUE(log.comes("connection_refused"));
  EXPECT_EQ(std::ssize(log.lines()), 1);
}

// Every worker but the first calls it at once, and each for all its channels: more callers than there are slots.
TEST_P(SocketStrangers, ALargeMeshOfHonestWorkersIsNoFlood) {
  LoopbackWorkers workers(20, options_of(GetParam()));
  for (const ConnectOutcome& outcome : workers.try_to_connect(1, 2 * kSoon)) {
    EXPECT_TRUE(outcome.connection) << outcome.connection.error();
  }
}

TEST_P(SocketStrangers, CallersWithTheKeyThatNeverProveThemselvesAreLetGo) {
  LogLines log;
  LoopbackWorkers workers(2, options_of(GetParam(), log.hook()));
  ConnectOutcome first{Error{}, {}};
  std::thread connecting([&] { first = workers.connectors[0]->connect(test_roster(0, workers.addresses), kSoon); });
  std::vector<Stranger> silent;
  for (int i = 0; i < 20; ++i) {
    silent.emplace_back(workers.addresses[0], GetParam());
    silent.back().say(encode_hello(hello_of_worker_1()));
    EXPECT_EQ(silent.back().hear_reply()->kind, Reply::Kind::kProof);
  }
  EXPECT_TRUE(log.comes("it began a handshake and fell silent"));
  for (Stranger& stranger : silent) EXPECT_EQ(stranger.hear(), "");
  const auto second = workers.connectors[1]->connect(test_roster(1, workers.addresses), kSoon);
  connecting.join();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
}

TEST_P(SocketStrangers, NoiseInEveryStageOfAHandshakeBlocksNobody) {
  LoopbackWorkers workers(2, options_of(GetParam()));
  std::vector<Stranger> callers;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    callers.emplace_back(workers.addresses[0], GetParam());
    if (seed % 2 == 0) callers.back().say(encode_hello(hello_of_worker_1()));
    callers.back().say(noise(seed, 200));
  }
  expect_honest_workers_connect(workers);
}

// Nothing is allocated or waited for because of what a length says.
TEST_P(SocketStrangers, RepliesThatPromiseTooMuchAreRefusedAtOnce) {
  LogLines log;
  LoopbackWorkers workers(2, options_of(GetParam(), log.hook()));
  ConnectOutcome first{Error{}, {}};
  std::thread connecting([&] { first = workers.connectors[0]->connect(test_roster(0, workers.addresses), kSoon); });
  for (const std::string_view length : {"\xFF\xFF\xFF\xFF", "\x31\x01\x01\x01", "\x31\x01\x01\x7F"}) {
    Stranger stranger(workers.addresses[0], GetParam());
    stranger.say(encode_hello(hello_of_worker_1()));
    ASSERT_EQ(stranger.hear_reply()->kind, Reply::Kind::kProof);
    stranger.say("p" + std::string(length));
    EXPECT_EQ(stranger.hear(), "");
  }
  EXPECT_TRUE(log.comes("it does not speak this protocol"));
  workers.connectors[0]->give_up(Generation{1}, 0);
  connecting.join();
}

// The same from somebody who stands at the address of a worker.
TEST_P(SocketStrangers, AnswersThatPromiseTooMuchEndTheTryAtOnce) {
  RelayedWorker worker(GetParam());
  const FileDescriptor entrance = worker.entrance();
  LoopbackWorkers caller(1, options_of(GetParam()));
  std::thread answering([&] {
    const FileDescriptor socket = [&] {
      while (true) {
        FileDescriptor taken(::accept4(entrance.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (taken.is_open()) return taken;
        std::this_thread::sleep_for(1ms);
      }
    }();
    say(socket, "p\xFF\xFF\xFF\xFF");
    hear(socket);
  });
  const auto outcome =
      caller.connectors[0]->connect(test_roster(1, {worker.address(), caller.addresses[0]}), 10 * kSoon);
  answering.join();
  ASSERT_FALSE(outcome.connection);
  EXPECT_EQ(outcome.connection.error().code, ErrorCode::kStaleGeneration) << outcome.connection.error();
  EXPECT_EQ(outcome.lost, (LostPeer{0, LostPeer::How::kRefused}));
}

INSTANTIATE_TEST_SUITE_P(, SocketStrangers, testing::ValuesIn(kAllWires), wire_name);

}  // namespace
}  // namespace everstep::trainer
