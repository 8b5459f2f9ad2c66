#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "launcher/job/job_secret.h"
#include "launcher/job/wire_options.h"
#include "trainer/socket/log_hook.h"
#include "trainer/socket/peer_address.h"
#include "trainer/wire/peer_connector.h"

namespace everstep::launcher {

struct WirePlace {
  std::uint64_t lineage = 0;
  std::string runtime_directory;  // for the sockets of this host
  trainer::LogHook log;
};

// Opens what peers call a worker at: a socket of this host, and with a secret a port of it. Where there can be no such
// socket the port alone has to do, and a line in the log says so; without a secret that is an error.
Result<std::unique_ptr<trainer::PeerConnector>> listen_for_workers(const WireOptions& wire, const JobSecret& secret,
                                                                   const WirePlace& place);

// Where that would be, as far as it is known before: without the port, and with the directory of the socket.
trainer::PeerAddress expected_address(const WireOptions& wire, bool has_secret);

}  // namespace everstep::launcher
