#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "trainer/socket/byte_stream.h"
#include "trainer/socket/call_port.h"
#include "trainer/socket/closing_streams.h"
#include "trainer/socket/dialer.h"
#include "trainer/socket/handshake_message.h"
#include "trainer/socket/lifelines.h"
#include "trainer/socket/log_hook.h"
#include "trainer/socket/member_loss.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

struct HandshakeRequest {
  int worker = 0;  // this one's place in `members`
  std::vector<HandshakeMember> members;
  const Dialer& dialer;
  ClosingStreams& closing;  // for the last words of a try that fails
  HandshakeSeal seal;
  LogHook log;
};

// All connections with one peer.
struct PeerStreams {
  std::unique_ptr<ByteStream> lifeline;
  PeerWords heard{};  // a goodbye: it has connected, and has nothing more to do
  std::array<std::unique_ptr<ByteStream>, kChannels> channels;

  bool are_complete() const {
    return lifeline && std::ranges::all_of(channels, [](const auto& stream) { return stream != nullptr; });
  }
};

struct HandshakeOutcome {
  Result<std::vector<PeerStreams>> peers;  // the own place is empty
  std::optional<LostPeer> lost{};
};

// Calls the workers before this one and takes the calls of those after it, all at once: first the lifeline, then, with
// the ticket that its welcome carries, one connection per channel. A connection counts when both sides have proved that
// they have the key and mean this try, these workers and this very connection. Connections that cannot are closed,
// logged and forgotten. See PeerConnector::connect for failures.
HandshakeOutcome shake_hands(CallInbox& inbox, const HandshakeRequest& request, std::chrono::milliseconds timeout);

}  // namespace everstep::trainer
