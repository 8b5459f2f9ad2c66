#include <chrono>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/trainer/socket/loopback_workers.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

namespace everstep::trainer {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using How = LostPeer::How;

// Two workers that connect to each other.
struct Pair {
  Pair(const SocketOptions& first_options, const SocketOptions& second_options)
      : first(1, first_options), second(1, second_options) {}

  std::vector<std::string> addresses() const { return {first.addresses[0], second.addresses[0]}; }

  std::pair<ConnectOutcome, ConnectOutcome> connect(std::chrono::milliseconds timeout) {
    ConnectOutcome one{Error{}, {}};
    std::thread connecting([&] { one = first.connectors[0]->connect(test_roster(0, addresses()), timeout); });
    ConnectOutcome other = second.connectors[0]->connect(test_roster(1, addresses()), timeout);
    connecting.join();
    return {std::move(one), std::move(other)};
  }

  LoopbackWorkers first;
  LoopbackWorkers second;
};

// Every wire with a secret.
SocketOptions options_with(Wire wire, const std::string& secret, LogHook log = {}) {
  if (wire == Wire::kUnix) return unix_options(secret, std::move(log));
  return wire == Wire::kTls ? tls_options(secret, std::move(log)) : certificate_options(secret, std::move(log));
}

class SocketSecurity : public OverEachWire {
 protected:
  static SocketOptions with(const std::string& secret, LogHook log = {}) {
    return options_with(GetParam(), secret, std::move(log));
  }
};

TEST_P(SocketSecurity, TheSameSecretConnects) {
  Pair pair(with("one"), with("one"));
  const auto [first, second] = pair.connect(kSoon);
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(second.connection) << second.connection.error();
}

TEST_P(SocketSecurity, AnotherSecretIsRefusedOnBothSidesWithOneLineEach) {
  LogLines called;
  LogLines caller;
  Pair pair(with("one", called.hook()), with("two", caller.hook()));
  const auto [first, second] = pair.connect(2s);
  EXPECT_FALSE(first.connection);
  EXPECT_EQ(second.connection.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(second.connection.error().message, HasSubstr("worker 0 does not have this job's secret"));
  EXPECT_THAT(second.connection.error().hint, HasSubstr("--secret-file"));
  EXPECT_EQ(second.lost, (LostPeer{0, How::kRefused}));
  EXPECT_EQ(called.count("connection_refused"), 1);
  EXPECT_EQ(caller.count("another secret"), 1);
}

TEST_P(SocketSecurity, ASecretOnOneSideOnlyIsRefused) {
  if (GetParam() != Wire::kUnix) return;  // there is no TLS without one
  Pair pair(with("one"), options_of(Wire::kUnix));
  const auto [first, second] = pair.connect(500ms);
  EXPECT_FALSE(first.connection);
  EXPECT_EQ(second.connection.error().code, ErrorCode::kInvalidArgument);
}

TEST_P(SocketSecurity, ACallerWithoutTheSecretIsRefusedEvenIfItMirrorsTheAnswer) {
  LogLines log;
  Pair pair(with("one", log.hook()), with("one"));
  ConnectOutcome first{Error{}, {}};
  std::thread connecting([&] { first = pair.first.connectors[0]->connect(test_roster(0, pair.addresses()), kSoon); });
  Stranger thief(pair.addresses()[0], GetParam());  // it may even have stolen the key of TLS
  thief.say(encode_hello(hello_of_worker_1()));
  const auto answer = thief.hear_reply();
  ASSERT_TRUE(answer && answer->kind == Reply::Kind::kProof);
  thief.say(encode_reply(*answer));
  EXPECT_EQ(understood(thief.hear())->refusal, Refusal::kBadProof);
  const auto second = pair.second.connectors[0]->connect(test_roster(1, pair.addresses()), kSoon);
  connecting.join();
  EXPECT_TRUE(second.connection) << "the real worker 1 is not blocked: " << second.connection.error();
  EXPECT_TRUE(first.connection) << first.connection.error();
  EXPECT_TRUE(log.comes("another secret, or a replay"));
}

// A real worker 0 that connects in the background, and callers that have its secret.
class Membership : public OverEachWire {
 protected:
  Membership() {
    connecting_ =
        std::thread([this] { outcome_ = workers_.connectors[0]->connect(test_roster(0, addresses_), kSoon); });
  }
  ~Membership() override {
    workers_.connectors[0]->give_up(Generation{1}, 0);
    connecting_.join();
  }

  Stranger caller() { return Stranger(workers_.addresses[0], GetParam()); }
  static HandshakeSeal seal() { return seal_of(GetParam()); }

  static CallerHello for_channel(Channel channel) { return hello_of_worker_1(1, 0, {channel}); }

  LoopbackWorkers workers_{2, options_of(GetParam())};  // the second only listens
  std::vector<std::string> addresses_ = workers_.addresses;
  ConnectOutcome outcome_{Error{}, {}};
  std::thread connecting_;
};

// A caller that has the secret, and says the same twice: what was recorded once is worth nothing the second time.
TEST_P(Membership, AReplayedProofIsRefused) {
  Stranger honest = caller();
  const CallerHello hello = hello_of_worker_1();
  honest.say(encode_hello(hello));
  const Proof theirs = honest.hear_reply()->proof;
  const Transcript transcript{hello, {}, honest.stream().binding()};
  EXPECT_TRUE(is_genuine(seal(), transcript, Side::kCalled, hello.fresh, theirs));
  const std::string recorded = proof_text(make_proof(seal(), transcript, Side::kCaller, theirs.fresh, {}));
  for (int i = 0; i < 3; ++i) {
    Stranger replay = caller();
    replay.say(encode_hello(hello));
    ASSERT_EQ(replay.hear_reply()->kind, Reply::Kind::kProof);
    replay.say(recorded);
    EXPECT_EQ(understood(replay.hear())->refusal, Refusal::kBadProof);
  }
  honest.say(recorded);
  EXPECT_EQ(honest.hear_reply()->kind, Reply::Kind::kWelcome);
}

TEST_P(Membership, EachChannelIsOpenedOnceWithTheTicketOfItsOwnLifeline) {
  Stranger lifeline = caller();
  const auto welcome = introduce(lifeline, seal(), hello_of_worker_1());
  ASSERT_TRUE(welcome && welcome->kind == Reply::Kind::kWelcome);

  Stranger second_lifeline = caller();
  EXPECT_EQ(introduce(second_lifeline, seal(), hello_of_worker_1())->refusal, Refusal::kNotExpected);

  HandshakeNonce other = welcome->ticket;
  ++other[1];
  for (const HandshakeNonce& ticket : {HandshakeNonce{}, other}) {
    Stranger thief = caller();
    EXPECT_EQ(introduce(thief, seal(), for_channel(Channel::kTensors), ticket)->refusal, Refusal::kBadProof);
  }
  std::vector<Stranger> channels;
  for (int channel = 0; channel < kChannels; ++channel) {
    channels.push_back(caller());
    const auto opened = introduce(channels.back(), seal(), for_channel(static_cast<Channel>(channel)), welcome->ticket);
    ASSERT_TRUE(opened && opened->kind == Reply::Kind::kWelcome) << channel;
    EXPECT_EQ(opened->ticket, HandshakeNonce{}) << "a channel opens nothing further";
    if (channel == 0) {
      Stranger again = caller();
      EXPECT_EQ(introduce(again, seal(), for_channel(Channel::kTensors), welcome->ticket)->refusal,
                Refusal::kNotExpected);
    }
  }
  connecting_.join();
  connecting_ = std::thread([] {});
  EXPECT_TRUE(outcome_.connection) << outcome_.connection.error();
  Stranger late = caller();
  EXPECT_EQ(introduce(late, seal(), for_channel(Channel::kTensors), welcome->ticket)->refusal, Refusal::kOver);
}

// Two lifelines race; the ticket belongs to the one that was welcomed.
TEST_P(Membership, ALifelineThatWasNotWelcomedOpensNoChannel) {
  Stranger slow = caller();
  const CallerHello hello = hello_of_worker_1();
  slow.say(encode_hello(hello));
  const Proof theirs = slow.hear_reply()->proof;
  Stranger quick = caller();
  ASSERT_EQ(introduce(quick, seal(), hello_of_worker_1())->kind, Reply::Kind::kWelcome);
  const Transcript transcript{hello, {}, slow.stream().binding()};
  slow.say(proof_text(make_proof(seal(), transcript, Side::kCaller, theirs.fresh, {})));
  EXPECT_EQ(slow.hear_reply()->refusal, Refusal::kNotExpected);
}

// A proof says which side it is of, for which purpose and on which connection.
TEST_P(Membership, AProofIsWorthNothingOnAnotherConnection) {
  const CallerHello hello = hello_of_worker_1();
  Stranger first = caller();
  Stranger second = caller();
  first.say(encode_hello(hello));
  const Proof theirs = first.hear_reply()->proof;
  second.say(encode_hello(hello));
  ASSERT_EQ(second.hear_reply()->kind, Reply::Kind::kProof);
  const Transcript transcript{hello, {}, first.stream().binding()};
  second.say(proof_text(make_proof(seal(), transcript, Side::kCaller, theirs.fresh, {})));
  EXPECT_EQ(second.hear_reply()->refusal, Refusal::kBadProof);
}

TEST_P(Membership, AProofWithoutTheBindingOfTheConnectionIsRefused) {
  if (GetParam() == Wire::kUnix) return;  // the kernel vouches for the other end
  const CallerHello hello = hello_of_worker_1();
  Stranger stranger = caller();
  stranger.say(encode_hello(hello));
  const Proof theirs = stranger.hear_reply()->proof;
  stranger.say(proof_text(make_proof(seal(), {hello, {}, {}}, Side::kCaller, theirs.fresh, {})));
  EXPECT_EQ(stranger.hear_reply()->refusal, Refusal::kBadProof);
}

TEST_P(Membership, RepliesInTheWrongPlaceAreRefused) {
  for (const Reply::Kind kind : {Reply::Kind::kWelcome, Reply::Kind::kRefusal}) {
    Stranger stranger = caller();
    stranger.say(encode_hello(hello_of_worker_1()));
    ASSERT_EQ(stranger.hear_reply()->kind, Reply::Kind::kProof);
    Reply reply;
    reply.kind = kind;
    stranger.say(encode_reply(reply));
    EXPECT_EQ(stranger.hear(), "");
  }
}

INSTANTIATE_TEST_SUITE_P(, SocketSecurity, testing::ValuesIn(kAllWires), wire_name);
INSTANTIATE_TEST_SUITE_P(, Membership, testing::ValuesIn(kAllWires), wire_name);

}  // namespace
}  // namespace everstep::trainer
