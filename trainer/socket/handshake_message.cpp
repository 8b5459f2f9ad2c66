#include "trainer/socket/handshake_message.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "trainer/wire/byte_codec.h"
#include "trainer/wire/frame.h"

namespace everstep::trainer {
namespace {

constexpr std::uint64_t kMagic = 0x31455249575045;  // "EPWIRE1": the version of all that follows

void put(WireWriter& writer, const HandshakeNonce& words) {
  for (const std::uint64_t word : words) writer.put(word);
}

void get(WireReader& reader, HandshakeNonce& words) {
  for (std::uint64_t& word : words) reader.get(word);
}

void put(WireWriter& writer, const ConnectionEnd& end) {
  writer.put(static_cast<std::int32_t>(end.worker));
  put(writer, end.id.words);
}

void get(WireReader& reader, ConnectionEnd& end) {
  end.worker = reader.get<std::int32_t>();
  get(reader, end.id.words);
}

constexpr std::uint8_t kLifeline = 0;  // channels count from 1

std::uint8_t code_of(const Purpose& purpose) {
  return purpose.channel ? static_cast<std::uint8_t>(1 + static_cast<int>(*purpose.channel)) : kLifeline;
}

std::optional<Purpose> purpose_of(std::uint8_t code) {
  if (code > kChannels) return std::nullopt;
  return code == kLifeline ? Purpose{} : Purpose{static_cast<Channel>(code - 1)};
}

storage::Digest mac_of(const HandshakeSeal& seal, const Transcript& transcript, Side side,
                       const HandshakeNonce& challenge, const HandshakeNonce& fresh) {
  WireWriter covered;
  covered.put_text("proof");
  covered.put_text(encode_hello(transcript.hello));
  put(covered, transcript.ticket);
  covered.put_text(transcript.binding);
  covered.put(static_cast<std::uint8_t>(side));
  put(covered, challenge);
  put(covered, fresh);
  return seal(std::move(covered).take());
}

bool is_known(Refusal refusal) { return refusal >= Refusal::kOver && refusal <= Refusal::kBadProof; }

bool decode_body(WireReader& reader, Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kProof:
      get(reader, reply.proof.fresh);
      for (std::byte& byte : reply.proof.mac.bytes) byte = static_cast<std::byte>(reader.get<std::uint8_t>());
      return true;
    case Reply::Kind::kRefusal:
      reply.refusal = static_cast<Refusal>(reader.get<std::uint8_t>());
      return is_known(reply.refusal);
    case Reply::Kind::kWelcome:
      get(reader, reply.ticket);
      return true;
  }
  return false;
}

}  // namespace

storage::Digest unkeyed_seal(std::string_view text) {
  WireWriter sums;
  std::string block(text);
  for (const char salt : {'1', '2', '3', '4'}) {
    block.push_back(salt);
    sums.put(byte_checksum(std::as_bytes(std::span(block))));
  }
  storage::Digest digest;
  std::copy(sums.bytes().begin(), sums.bytes().end(), digest.bytes.begin());
  return digest;
}

std::string encode_hello(const CallerHello& hello) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(hello.attempt.lineage);
  writer.put(hello.attempt.generation.value);
  writer.put(hello.attempt.nonce);
  put(writer, hello.caller);
  put(writer, hello.called);
  writer.put(code_of(hello.purpose));
  put(writer, hello.fresh);
  EVERSTEP_CHECK(writer.bytes().size() == kHelloBytes, "a hello has another length than its readers expect");
  return std::move(writer).take();
}

std::optional<CallerHello> decode_hello(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  if (reader.get<std::uint64_t>() != kMagic) return std::nullopt;
  CallerHello hello;
  reader.get(hello.attempt.lineage);
  reader.get(hello.attempt.generation.value);
  reader.get(hello.attempt.nonce);
  get(reader, hello.caller);
  get(reader, hello.called);
  const std::optional<Purpose> purpose = purpose_of(reader.get<std::uint8_t>());
  get(reader, hello.fresh);
  if (!reader.at_end() || !purpose) return std::nullopt;
  hello.purpose = *purpose;
  return hello;
}

std::string_view to_string(Refusal refusal) {
  switch (refusal) {
    case Refusal::kOver:
      return "its generation or try is over";
    case Refusal::kTooEarly:
      return "it came too early and waited too long";
    case Refusal::kOtherRun:
      return "it belongs to another lineage";
    case Refusal::kNotExpected:
      return "another worker is expected";
    case Refusal::kBadProof:
      return "its proof does not fit: another secret, or a replay";
  }
  return "unknown";
}

Proof make_proof(const HandshakeSeal& seal, const Transcript& transcript, Side side, const HandshakeNonce& challenge,
                 const HandshakeNonce& fresh) {
  return {fresh, mac_of(seal, transcript, side, challenge, fresh)};
}

bool is_genuine(const HandshakeSeal& seal, const Transcript& transcript, Side side, const HandshakeNonce& challenge,
                const Proof& proof) {
  return equal_digests(mac_of(seal, transcript, side, challenge, proof.fresh), proof.mac);
}

std::string encode_reply(const Reply& reply) {
  WireWriter body;
  if (reply.kind == Reply::Kind::kProof) {
    put(body, reply.proof.fresh);
    for (const std::byte byte : reply.proof.mac.bytes) body.put(std::to_integer<std::uint8_t>(byte));
  } else if (reply.kind == Reply::Kind::kRefusal) {
    body.put(static_cast<std::uint8_t>(reply.refusal));
  } else {
    put(body, reply.ticket);
  }
  EVERSTEP_CHECK(body.bytes().size() <= kLongestReply, "a reply is longer than any reader accepts");
  WireWriter whole;
  whole.put(static_cast<std::uint8_t>(reply.kind));
  whole.put_text(std::move(body).take());
  return std::move(whole).take();
}

std::optional<std::size_t> reply_body_bytes(std::span<const std::byte> head) {
  WireReader reader(head);
  reader.get<std::uint8_t>();
  const std::size_t size = reader.get<std::uint32_t>();
  if (!reader.at_end() || size > kLongestReply) return std::nullopt;
  return size;
}

std::optional<Reply> decode_reply(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  Reply reply;
  reply.kind = static_cast<Reply::Kind>(reader.get<std::uint8_t>());
  if (reader.get<std::uint32_t>() + kReplyHeadBytes != bytes.size()) return std::nullopt;
  if (!decode_body(reader, reply) || !reader.at_end()) return std::nullopt;
  return reply;
}

}  // namespace everstep::trainer
