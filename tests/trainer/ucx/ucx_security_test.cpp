#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/trainer/ucx/loopback_workers.h"
#include "tests/trainer/ucx/stranger.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using How = LostPeer::How;

// Two workers that connect to each other.
struct Pair {
  explicit Pair(const UcxOptions& first_options = {}, const UcxOptions& second_options = {})
      : first(UcxListener::listen(first_options).value()), second(UcxListener::listen(second_options).value()) {}

  std::vector<std::string> addresses() const { return {first->address(), second->address()}; }

  std::pair<UcxOutcome, UcxOutcome> connect(std::chrono::milliseconds timeout) {
    UcxOutcome one{Error{}, {}};
    std::thread connecting([&] { one = first->connect(test_group(0, addresses()), timeout); });
    UcxOutcome other = second->connect(test_group(1, addresses()), timeout);
    connecting.join();
    return {std::move(one), std::move(other)};
  }

  std::unique_ptr<UcxListener> first;
  std::unique_ptr<UcxListener> second;
};

TEST(UcxSecurity, TheSameSecretConnects) {
  Pair pair({.seal = seal_with("one")}, {.seal = seal_with("one")});
  const auto [first, second] = pair.connect(10s);
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
}

TEST(UcxSecurity, AnotherSecretIsRefusedOnBothSidesWithOneLineEach) {
  LogLines log;
  Pair pair({.seal = seal_with("one"), .log = log.hook()}, {.seal = seal_with("two"), .log = log.hook()});
  const auto [first, second] = pair.connect(1s);
  EXPECT_FALSE(first.connection);
  EXPECT_EQ(second.connection.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(second.connection.error().message, HasSubstr("worker 0 does not have this job's secret"));
  EXPECT_EQ(second.lost, (LostPeer{0, How::kRefused}));
  const auto lines = log.lines();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const auto& line) { return line.find("another secret") != std::string::npos; }),
            2);
}

TEST(UcxSecurity, ACallerWithoutTheSecretIsRefusedEvenIfItMirrorsTheAnswer) {
  LogLines log;
  Pair pair({.seal = seal_with("one"), .log = log.hook()}, {.seal = seal_with("one")});
  UcxOutcome first{Error{}, {}};
  std::thread connecting([&] { first = pair.first->connect(test_group(0, pair.addresses()), 10s); });
  const FileDescriptor thief = call(pair.first->address());
  say(thief, encode_hello(hello_of_worker_1()));
  say(thief, hear_reply(thief));
  EXPECT_EQ(understood(hear(thief))->refusal, Refusal::kBadProof);
  const auto second = pair.second->connect(test_group(1, pair.addresses()), 10s);
  connecting.join();
  EXPECT_TRUE(second.connection) << "the real worker 1 is not blocked: " << second.connection.error();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(log.comes("another secret, or a replay"));
}

// A caller that has the secret, and says the same twice: what was recorded once is worth nothing the second time.
TEST(UcxSecurity, AReplayedHandshakeIsRefused) {
  const HandshakeSeal seal = seal_with("one");
  std::string recorded;
  for (const bool replay : {false, true}) {
    const auto listener = UcxListener::listen({.seal = seal}).value();
    UcxOutcome outcome{Error{}, {}};
    std::thread connecting([&] {
      outcome = listener->connect(test_group(0, {listener->address(), "127.0.0.1:1"}), 300ms);
    });
    const FileDescriptor caller = call(listener->address());
    const CallerHello hello = hello_of_worker_1();
    say(caller, encode_hello(hello));
    const Proof theirs = understood(hear_reply(caller))->proof;
    EXPECT_TRUE(is_genuine(seal, hello, Side::kCalled, hello.fresh, theirs));
    if (!replay) recorded = proof_text(make_proof(seal, hello, Side::kCaller, theirs.fresh, {}, theirs.ucx_address));
    say(caller, recorded);
    const std::string head = hear(caller, kReplyHeadBytes);
    EXPECT_EQ(head[0], replay ? 'r' : 'w');
    connecting.join();
    EXPECT_EQ(outcome.connection.ok(), !replay);
  }
}

TEST(UcxSecurity, StrangersAreTurnedAwayAndBlockNobody) {
  LogLines log;
  Pair pair({.log = log.hook()});
  const FileDescriptor noisy = call(pair.first->address());
  say(noisy, std::string(1000, 'x'));
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 50; ++i) silent.push_back(call(pair.first->address()));
  call(pair.first->address()).reset();  // as one that only wants to know who lives
  FileDescriptor interrupted = call(pair.first->address());
  say(interrupted, encode_hello(hello_of_worker_1()).substr(0, 30));
  interrupted.reset();
  const FileDescriptor of_another_run = call(pair.first->address());
  CallerHello other = hello_of_worker_1();
  other.attempt.lineage = kTestLineage + 1;
  say(of_another_run, encode_hello(other));
  const auto [first, second] = pair.connect(10s);
  ASSERT_TRUE(first.connection) << first.connection.error();
  ASSERT_TRUE(second.connection) << second.connection.error();
  EXPECT_EQ(understood(hear(of_another_run))->refusal, Refusal::kOtherRun);
  EXPECT_EQ(hear(noisy), "");
  EXPECT_TRUE(log.comes("does not speak this protocol"));
  EXPECT_TRUE(log.comes("hung up"));
  EXPECT_TRUE(log.comes("another lineage"));
}

TEST(UcxSecurity, ASilentStrangerIsDroppedAfterAWhile) {
  const auto listener = UcxListener::listen({}).value();
  const FileDescriptor silent = call(listener->address());
  EXPECT_EQ(hear(silent), "");  // hear() would wait 10 s
  const FileDescriptor slow = call(listener->address());
  say(slow, encode_hello(hello_of_worker_1()).substr(0, 50));
  EXPECT_EQ(hear(slow), "");
}

TEST(UcxSecurity, RandomBytesAreNeverAReplyNorAHello) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const RandomStream random(seed, 0);
    std::string bytes(random.below(0, 200), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random.below(i + 1, 256));
    EXPECT_FALSE(decode_hello(std::as_bytes(std::span(bytes))));
    if (!bytes.empty()) bytes[0] = "pwr"[seed % 3];
    if (const auto reply = decode_reply(std::as_bytes(std::span(bytes)))) {
      EXPECT_EQ(encode_reply(*reply), bytes) << "what is accepted is exactly what encode_reply makes";
    }
  }
}

TEST(UcxSecurity, DamagedRepliesAreRefused) {
  const HandshakeSeal seal = seal_with("one");
  const CallerHello hello = hello_of_worker_1();
  const std::string good = proof_text(make_proof(seal, hello, Side::kCaller, {3, 4}, {5, 6}, "where UCX is"));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto reply = decode_reply(std::as_bytes(std::span(bad)));
    EXPECT_FALSE(reply && reply->kind == Reply::Kind::kProof &&
                 is_genuine(seal, hello, Side::kCaller, {3, 4}, reply->proof))
        << "byte " << at;
    EXPECT_FALSE(decode_reply(std::as_bytes(std::span(good)).first(at)));
  }
  EXPECT_FALSE(understood(good + "x"));
}

TEST(UcxSecurity, NoiseInEveryStageOfAHandshakeBlocksNobody) {
  Pair pair;
  std::vector<FileDescriptor> callers;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    callers.push_back(call(pair.first->address()));
    if (seed % 2 == 0) say(callers.back(), encode_hello(hello_of_worker_1()));
    std::string noise(200, '\0');
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<char>(RandomStream(seed, 1).below(i, 256));
    say(callers.back(), noise);
  }
  const auto [first, second] = pair.connect(10s);
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
}

}  // namespace
}  // namespace everstep::trainer
