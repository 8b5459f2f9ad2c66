#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/ids.h"
#include "storage/hashing.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// An HMAC with the job's data plane key. Without a secret a plain hash still binds a connection to its fields.
using HandshakeSeal = std::function<storage::Digest(std::string_view)>;

// Binds, but does not authenticate.
storage::Digest unkeyed_seal(std::string_view text);

using HandshakeNonce = std::array<std::uint64_t, 2>;

// Which try to form which generation a connection belongs to.
struct PeerAttempt {
  std::uint64_t lineage = 0;
  Generation generation{};
  std::uint32_t nonce = 0;

  bool operator==(const PeerAttempt&) const = default;
};

// One end of a connection.
struct ConnectionEnd {
  int worker = 0;
  WorkerId id;

  bool operator==(const ConnectionEnd&) const = default;
};

// What a connection is for.
struct Purpose {
  std::optional<Channel> channel{};  // nothing: the lifeline, which comes first

  bool operator==(const Purpose&) const = default;
};

// The caller speaks first.
struct CallerHello {
  PeerAttempt attempt;
  ConnectionEnd caller;
  ConnectionEnd called;
  Purpose purpose;
  HandshakeNonce fresh{};
};
inline constexpr std::size_t kHelloBytes = 8 + 8 + 8 + 4 + 2 * (4 + 16) + 1 + 16;

std::string encode_hello(const CallerHello& hello);
std::optional<CallerHello> decode_hello(std::span<const std::byte> bytes);  // of kHelloBytes

// Why a connection is turned away by a worker that lives.
enum class Refusal : std::uint8_t {
  kOver = 1,     // its generation or try is over here, or was given up
  kTooEarly,     // too many wait already, or it waited too long
  kOtherRun,     // another lineage
  kNotExpected,  // another id or place than the one that is called, or it is connected already
  kBadProof,     // the secrets differ, or the call is a replay
};
std::string_view to_string(Refusal refusal);

// Each side proves that it has the key and means this very connection.
struct Proof {
  HandshakeNonce fresh{};
  storage::Digest mac;
};

enum class Side : std::uint8_t { kCaller = 1, kCalled };

// What a proof covers, beside what the two sides make up.
struct Transcript {
  CallerHello hello;
  HandshakeNonce ticket{};  // of a channel: what the lifeline's welcome carried. So it belongs to that lifeline.
  std::string binding{};    // ByteStream::binding
};

// The answer to a hello, and then the caller's answer to that: a proof of `side`. `challenge` is what the other side
// made up for this connection.
Proof make_proof(const HandshakeSeal& seal, const Transcript& transcript, Side side, const HandshakeNonce& challenge,
                 const HandshakeNonce& fresh);
bool is_genuine(const HandshakeSeal& seal, const Transcript& transcript, Side side, const HandshakeNonce& challenge,
                const Proof& proof);

// What travels after the hello, as kind, length and content.
struct Reply {
  enum class Kind : std::uint8_t { kProof = 'p', kWelcome = 'w', kRefusal = 'r' };

  Kind kind = Kind::kWelcome;
  Proof proof{};                     // kProof
  HandshakeNonce ticket{};           // kWelcome to a lifeline: what opens its channels; else 0
  Refusal refusal = Refusal::kOver;  // kRefusal
};
inline constexpr std::size_t kReplyHeadBytes = 5;
inline constexpr std::size_t kLongestReply = 48;

std::string encode_reply(const Reply& reply);

// How many bytes follow these kReplyHeadBytes; nothing if they are no reply's.
std::optional<std::size_t> reply_body_bytes(std::span<const std::byte> head);
std::optional<Reply> decode_reply(std::span<const std::byte> bytes);  // head and body

}  // namespace everstep::trainer
