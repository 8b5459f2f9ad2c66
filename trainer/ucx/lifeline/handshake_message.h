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

namespace everstep::trainer {

// An HMAC with the job's data plane key. Without a secret a plain hash still binds a connection to its fields.
using HandshakeSeal = std::function<storage::Digest(std::string_view)>;

// Binds, but does not authenticate.
storage::Digest unkeyed_seal(std::string_view text);

using HandshakeNonce = std::array<std::uint64_t, 2>;

// Which try to form which generation a connection belongs to.
struct LifelineAttempt {
  std::uint64_t lineage = 0;
  Generation generation{};
  std::uint32_t nonce = 0;

  bool operator==(const LifelineAttempt&) const = default;
};

// One end of a connection.
struct LifelineEnd {
  int worker = 0;
  WorkerId id;

  bool operator==(const LifelineEnd&) const = default;
};

// The caller speaks first.
struct CallerHello {
  LifelineAttempt attempt;
  LifelineEnd caller;
  LifelineEnd called;
  HandshakeNonce fresh{};
};
inline constexpr std::size_t kHelloBytes = 8 + 8 + 8 + 4 + 2 * (4 + 16) + 16;

std::string encode_hello(const CallerHello& hello);
std::optional<CallerHello> decode_hello(std::span<const std::byte> bytes);  // of kHelloBytes

// Why a connection is turned away by a worker that lives.
enum class Refusal : std::uint8_t {
  kOver = 1,     // its generation or try is over here, or was given up
  kTooEarly,     // too many wait already, or it waited too long
  kOtherRun,     // another lineage
  kNotExpected,  // another incarnation or place than the one that is called, or it is connected already
  kBadProof,     // the secrets differ, or the call is a replay
};
std::string_view to_string(Refusal refusal);

// Each side proves that it has the key and means this very connection, and says where UCX reaches it.
struct Proof {
  HandshakeNonce fresh{};
  std::string ucx_address;
  storage::Digest mac;
};

enum class Side : std::uint8_t { kCaller = 1, kCalled };

// The answer to a hello, and then the caller's answer to that: a proof of `side`. `challenge` is what the other side
// made up for this connection.
Proof make_proof(const HandshakeSeal& seal, const CallerHello& hello, Side side, const HandshakeNonce& challenge,
                 const HandshakeNonce& fresh, std::string ucx_address);
bool is_genuine(const HandshakeSeal& seal, const CallerHello& hello, Side side, const HandshakeNonce& challenge,
                const Proof& proof);

// What travels after the hello, as kind, length and content.
struct Reply {
  enum class Kind : std::uint8_t { kProof = 'p', kWelcome = 'w', kRefusal = 'r' };

  Kind kind = Kind::kWelcome;
  Proof proof{};                     // kProof
  Refusal refusal = Refusal::kOver;  // kRefusal
};
inline constexpr std::size_t kReplyHeadBytes = 5;
inline constexpr std::size_t kLongestReply = 8192;

std::string encode_reply(const Reply& reply);

// How many bytes follow these kReplyHeadBytes; nothing if they are no reply's.
std::optional<std::size_t> reply_body_bytes(std::span<const std::byte> head);
std::optional<Reply> decode_reply(std::span<const std::byte> bytes);  // head and body

}  // namespace everstep::trainer
