#include "trainer/socket/handshake_message.h"

#include <limits>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/trainer/socket/stranger.h"
#include "tests/trainer/socket/wires.h"

namespace everstep::trainer {
namespace {

using namespace std::string_literals;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

CallerHello hello() {
  return {{0x0102030405060708, Generation{0x1112131415161718}, 0x21222324},
          {0x31323334, {{0x4142434445464748, 0x5152535455565758}}},
          {0x61626364, {{0x7172737475767778, 0x0807060504030201}}},
          {Channel::kRecords},
          {0x1817161514131211, 0x2827262524232221}};
}

// Workers of two builds meet, so the bytes are a promise.
TEST(HandshakeMessages, AHelloHasTheseBytes) {
  const std::string expected =
      "EPWIRE1\0"
      "\x08\x07\x06\x05\x04\x03\x02\x01"
      "\x18\x17\x16\x15\x14\x13\x12\x11"
      "\x24\x23\x22\x21"
      "\x34\x33\x32\x31"
      "HGFEDCBAXWVUTSRQ"
      "dcba"
      "xwvutsrq\x01\x02\x03\x04\x05\x06\x07\x08"
      "\x03"
      "\x11\x12\x13\x14\x15\x16\x17\x18"
      "!\"#$%&'("s;
  EXPECT_EQ(encode_hello(hello()), expected);
  EXPECT_EQ(expected.size(), kHelloBytes);
}

void expect_same(const CallerHello& a, const CallerHello& b) {
  EXPECT_EQ(a.attempt, b.attempt);
  EXPECT_EQ(a.caller, b.caller);
  EXPECT_EQ(a.called, b.called);
  EXPECT_EQ(a.purpose, b.purpose);
  EXPECT_EQ(a.fresh, b.fresh);
}

TEST(HandshakeMessages, AHelloIsReadAsItWasWritten) {
  expect_same(decode_hello(bytes_of(encode_hello(hello()))).value(), hello());
  for (int channel = -1; channel < kChannels; ++channel) {
    CallerHello one = hello();
    one.purpose = channel < 0 ? Purpose{} : Purpose{static_cast<Channel>(channel)};
    expect_same(decode_hello(bytes_of(encode_hello(one))).value(), one);
  }
  CallerHello extreme = hello();
  extreme.caller.worker = -1;
  extreme.called.worker = std::numeric_limits<std::int32_t>::min();
  extreme.attempt.generation = Generation{-1};
  expect_same(decode_hello(bytes_of(encode_hello(extreme))).value(), extreme);
}

TEST(HandshakeMessages, EveryByteOfAHelloMatters) {
  const std::string good = encode_hello(hello());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 0x80);
    const auto read = decode_hello(bytes_of(bad));
    const bool is_magic_or_purpose = at < 8 || at == 68;
    EXPECT_EQ(read.has_value(), !is_magic_or_purpose) << "byte " << at;
    EXPECT_TRUE(!read || encode_hello(*read) == bad) << "byte " << at;
    EXPECT_FALSE(decode_hello(bytes_of(good).first(at)));
  }
  EXPECT_FALSE(decode_hello(bytes_of(good + "x")));
}

Reply proof_reply() {
  Reply reply;
  reply.kind = Reply::Kind::kProof;
  reply.proof.fresh = {0x0102030405060708, 0x1112131415161718};
  for (std::size_t i = 0; i < 32; ++i) reply.proof.mac.bytes[i] = static_cast<std::byte>('A' + i);
  return reply;
}

Reply welcome_reply() {
  Reply reply;
  reply.ticket = {0x2122232425262728, 0x3132333435363738};
  return reply;
}

Reply refusal_reply(Refusal refusal) {
  Reply reply;
  reply.kind = Reply::Kind::kRefusal;
  reply.refusal = refusal;
  return reply;
}

TEST(HandshakeMessages, RepliesHaveTheseBytes) {
  EXPECT_EQ(encode_reply(proof_reply()),
            "p\x30\0\0\0"
            "\x08\x07\x06\x05\x04\x03\x02\x01\x18\x17\x16\x15\x14\x13\x12\x11"
            "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`"s);
  EXPECT_EQ(encode_reply(welcome_reply()), "w\x10\0\0\0('&%$#\"!87654321"s);
  EXPECT_EQ(encode_reply(refusal_reply(Refusal::kOver)), "r\x01\0\0\0\x01"s);
  EXPECT_EQ(encode_reply(refusal_reply(Refusal::kBadProof)), "r\x01\0\0\0\x05"s);
}

TEST(HandshakeMessages, RepliesAreReadAsTheyWereWritten) {
  std::vector<Reply> replies{proof_reply(), welcome_reply()};
  for (int refusal = 1; refusal <= 5; ++refusal) replies.push_back(refusal_reply(static_cast<Refusal>(refusal)));
  for (const Reply& reply : replies) {
    const std::string text = encode_reply(reply);
    EXPECT_EQ(reply_body_bytes(bytes_of(text).first(kReplyHeadBytes)), text.size() - kReplyHeadBytes);
    const auto read = decode_reply(bytes_of(text));
    ASSERT_TRUE(read);
    EXPECT_EQ(encode_reply(*read), text);
    EXPECT_EQ(read->kind, reply.kind);
    for (std::size_t length = 0; length < text.size(); ++length) {
      EXPECT_FALSE(decode_reply(bytes_of(text).first(length))) << length;
    }
    EXPECT_FALSE(decode_reply(bytes_of(text + "x")));
  }
}

TEST(HandshakeMessages, LengthsThatAreTooLongAreNoReply) {
  EXPECT_EQ(reply_body_bytes(bytes_of("p\x30\0\0\0"s)), kLongestReply);
  for (const std::string& head : {"p\x31\0\0\0"s, "w\xFF\xFF\xFF\xFF"s, "r\0\0\0\x01"s, "p\x30\0\0"s, ""s}) {
    EXPECT_FALSE(reply_body_bytes(bytes_of(head)));
  }
  EXPECT_FALSE(understood("r\xFB\xFF\xFF\xFF"s)) << "the length of the whole wraps around to what there is";
}

TEST(HandshakeMessages, RefusalsThatThereAreNotAreNoReply) {
  EXPECT_FALSE(understood("r\x01\0\0\0\0"s));
  EXPECT_FALSE(understood("r\x01\0\0\0\x06"s));
  EXPECT_FALSE(understood("x\x01\0\0\0\x01"s));
}

TEST(HandshakeMessages, RandomBytesAreNeverAReplyNorAHello) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const RandomStream random(seed, 0);
    std::string bytes(random.below(0, 200), '\0');
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random.below(i + 1, 256));
    EXPECT_FALSE(decode_hello(bytes_of(bytes)));
    if (!bytes.empty()) bytes[0] = "pwr"[seed % 3];
    if (const auto reply = decode_reply(bytes_of(bytes))) {
      EXPECT_EQ(encode_reply(*reply), bytes) << "what is accepted is exactly what encode_reply makes";
    }
  }
}

// A proof covers every field, so that none of two connections is good for another.
class Proofs : public testing::TestWithParam<bool> {
 protected:
  static HandshakeSeal seal() { return GetParam() ? seal_with("one") : HandshakeSeal(unkeyed_seal); }
};

TEST_P(Proofs, CoverAllOfTheTranscript) {
  const Transcript transcript{hello(), {1, 2}, "binding"};
  const Proof good = make_proof(seal(), transcript, Side::kCaller, {3, 4}, {5, 6});
  EXPECT_TRUE(is_genuine(seal(), transcript, Side::kCaller, {3, 4}, good));

  const std::string text = encode_hello(hello());
  for (std::size_t at = 8; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    const auto changed = decode_hello(bytes_of(other));
    ASSERT_TRUE(changed);
    EXPECT_FALSE(is_genuine(seal(), {*changed, {1, 2}, "binding"}, Side::kCaller, {3, 4}, good)) << "byte " << at;
  }
  EXPECT_FALSE(is_genuine(seal(), {hello(), {1, 3}, "binding"}, Side::kCaller, {3, 4}, good));
  EXPECT_FALSE(is_genuine(seal(), {hello(), {2, 2}, "binding"}, Side::kCaller, {3, 4}, good));
  EXPECT_FALSE(is_genuine(seal(), {hello(), {1, 2}, "Binding"}, Side::kCaller, {3, 4}, good));
  EXPECT_FALSE(is_genuine(seal(), {hello(), {1, 2}, ""}, Side::kCaller, {3, 4}, good));
  EXPECT_FALSE(is_genuine(seal(), transcript, Side::kCalled, {3, 4}, good)) << "no side can use the other's proof";
  EXPECT_FALSE(is_genuine(seal(), transcript, Side::kCaller, {3, 5}, good));
  EXPECT_FALSE(is_genuine(seal(), transcript, Side::kCaller, {4, 4}, good));
}

TEST_P(Proofs, ThatWereDamagedAreRefused) {
  const Transcript transcript{hello(), {}, {}};
  const std::string good = proof_text(make_proof(seal(), transcript, Side::kCaller, {3, 4}, {5, 6}));
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const auto reply = understood(bad);
    EXPECT_FALSE(reply && reply->kind == Reply::Kind::kProof &&
                 is_genuine(seal(), transcript, Side::kCaller, {3, 4}, reply->proof))
        << "byte " << at;
  }
}

INSTANTIATE_TEST_SUITE_P(, Proofs, testing::Values(false, true),
                         [](const auto& proof) { return proof.param ? "Keyed" : "Unkeyed"; });

TEST(HandshakeMessages, AnotherSecretMakesAnotherProof) {
  const Transcript transcript{hello(), {}, {}};
  const Proof proof = make_proof(seal_with("one"), transcript, Side::kCalled, {}, {});
  EXPECT_FALSE(is_genuine(seal_with("two"), transcript, Side::kCalled, {}, proof));
  EXPECT_FALSE(is_genuine(unkeyed_seal, transcript, Side::kCalled, {}, proof));
}

TEST(HandshakeMessages, EveryRefusalHasWordsOfItsOwn) {
  std::set<std::string_view> words;
  for (int refusal = 1; refusal <= 5; ++refusal) words.insert(to_string(static_cast<Refusal>(refusal)));
  EXPECT_EQ(words.size(), 5U);
}

}  // namespace
}  // namespace everstep::trainer
