#include <mutex>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/random.h"
#include "storage/openssl/openssl_hashing.h"
#include "tests/trainer/ucx/loopback_workers.h"
#include "trainer/ucx/lifeline/lifelines.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using How = LostPeer::How;

// Connects to a lifeline port like a stranger would. Stays connected as long as the result lives.
FileDescriptor call(const std::string& text) {
  const LifelineAddress address = parse_lifeline_address(text).value();
  FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(address.port);
  ::inet_pton(AF_INET, address.host.c_str(), &to.sin_addr);
  EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
  const timeval limit{.tv_sec = 10, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return socket;
}

void say(const FileDescriptor& socket, std::string_view bytes) {
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// All that comes before the other side hangs up, or `most` bytes.
std::string hear(const FileDescriptor& socket, std::size_t most = 100'000) {
  std::string heard(most, '\0');
  const ssize_t count = ::recv(socket.get(), heard.data(), heard.size(), MSG_WAITALL);
  heard.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  return heard;
}

HandshakeSeal seal_with(const std::string& key) {
  return [key](std::string_view text) { return storage::make_openssl_hashing()->hmac_sha256(key, text); };
}

class LogLines {
 public:
  LogHook hook() {
    return [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      lines_.push_back(line);
    };
  }
  std::vector<std::string> lines() {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

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

CallerHello hello_of_worker_1() {
  return {{kTestLineage, Generation{1}, 0}, {1, test_worker_id(1)}, {0, test_worker_id(0)}, {1, 2}};
}

std::string proof_text(const Proof& proof) {
  Reply reply;
  reply.kind = Reply::Kind::kProof;
  reply.proof = proof;
  return encode_reply(reply);
}

TEST(UcxSecurity, TheSameSecretConnects) {
  Pair pair({.seal = seal_with("one")}, {.seal = seal_with("one")});
  const auto [first, second] = pair.connect(10s);
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
}

TEST(UcxSecurity, AnotherSecretIsRefusedOnBothSidesWithOneLineEach) {
  LogLines log;
  Pair pair({.seal = seal_with("one"), .log = log.hook()}, {.seal = seal_with("two"), .log = log.hook()});
  const auto [first, second] = pair.connect(300ms);
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
  std::string answer = hear(thief, kReplyHeadBytes);
  answer += hear(thief, reply_body_bytes(std::as_bytes(std::span(answer))).value());
  say(thief, answer);
  const std::string verdict = hear(thief);
  EXPECT_EQ(decode_reply(std::as_bytes(std::span(verdict)))->refusal, Refusal::kBadProof);
  const auto second = pair.second->connect(test_group(1, pair.addresses()), 10s);
  connecting.join();
  EXPECT_TRUE(second.connection) << "the real worker 1 is not blocked: " << second.connection.error();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_THAT(log.lines(), Contains(HasSubstr("another secret, or a replay")));
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
    std::string answer = hear(caller, kReplyHeadBytes);
    answer += hear(caller, reply_body_bytes(std::as_bytes(std::span(answer))).value());
    const Proof theirs = decode_reply(std::as_bytes(std::span(answer)))->proof;
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
  call(pair.first->address()).reset();
  const FileDescriptor of_another_run = call(pair.first->address());
  CallerHello other = hello_of_worker_1();
  other.attempt.lineage = kTestLineage + 1;
  say(of_another_run, encode_hello(other));
  const auto [first, second] = pair.connect(10s);
  ASSERT_TRUE(first.connection) << first.connection.error();
  ASSERT_TRUE(second.connection) << second.connection.error();
  const std::string verdict = hear(of_another_run);
  EXPECT_EQ(decode_reply(std::as_bytes(std::span(verdict)))->refusal, Refusal::kOtherRun);
  EXPECT_EQ(hear(noisy), "");
  EXPECT_THAT(log.lines(), Contains(HasSubstr("does not speak this protocol")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("hung up")));
  EXPECT_THAT(log.lines(), Contains(HasSubstr("another lineage")));
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
  const std::string longer = good + "x";
  EXPECT_FALSE(decode_reply(std::as_bytes(std::span(longer))));
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
