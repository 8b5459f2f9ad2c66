#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "trainer/socket/byte_stream.h"
#include "trainer/socket/handshake_message.h"

namespace everstep::trainer {

// A connection whose two sides have not proved yet who they are.
struct OpenConnection {
  enum class Stage : std::uint8_t { kCalling, kNegotiating, kExpectsProof, kExpectsWelcome };

  std::unique_ptr<ByteStream> stream;  // none: it is established or given up
  Side side = Side::kCaller;           // this one's
  int tries = 1;                       // kCaller: the others were hung up on
  Transcript transcript{};
  Stage stage = Stage::kCalling;
  std::chrono::steady_clock::time_point until{};  // kCalled: how long a caller may take
  HandshakeNonce fresh{};                         // kCalled: what this side made up
  std::string inbox{};                            // the part of a reply that is here

  const CallerHello& hello() const { return transcript.hello; }
  const Purpose& purpose() const { return transcript.hello.purpose; }
  int peer() const { return side == Side::kCaller ? hello().called.worker : hello().caller.worker; }

  // What to poll for.
  short awaited() const;

  // kMoved: a whole reply has come; nothing, if it is none. Reads no byte behind it: that belongs to the lifeline.
  StreamResult read_reply(std::optional<Reply>& reply);

 private:
  std::size_t bytes_wanted() const;
};

// Numbers that nobody can guess.
HandshakeNonce fresh_nonce();

}  // namespace everstep::trainer
