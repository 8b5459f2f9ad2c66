#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "trainer/transport.h"
#include "trainer/ucx/lifeline/handshake_message.h"
#include "trainer/ucx/lifeline/lifeline_port.h"

namespace everstep::trainer {

struct HandshakeMember {
  WorkerId id;
  LifelineAddress address;
  std::string name{};  // for people; empty: its place
};

struct HandshakeRequest {
  int worker = 0;  // this one's place in `members`
  std::vector<HandshakeMember> members;
  std::string ucx_address;  // this one's
  HandshakeSeal seal;
  LogHook log;
};

struct ConnectedPeers {
  std::vector<FileDescriptor> sockets;     // the own place is empty
  std::vector<std::string> ucx_addresses;  // the own one included
};

struct HandshakeOutcome {
  Result<ConnectedPeers> peers;
  std::optional<LostPeer> lost{};
};

// Calls the workers before this one and takes the calls of those after it, all at once. A connection counts when both
// sides have proved that they have the key and mean this try, these incarnations and this very connection. Connections
// that cannot are closed, logged and forgotten. See UcxListener::connect for failures.
HandshakeOutcome shake_hands(CallInbox& inbox, const HandshakeRequest& request, std::chrono::milliseconds timeout);

}  // namespace everstep::trainer
