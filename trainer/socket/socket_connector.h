#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "trainer/socket/handshake_message.h"
#include "trainer/socket/log_hook.h"
#include "trainer/socket/tls/tls_context.h"
#include "trainer/wire/peer_connector.h"

namespace everstep::trainer {

// One port, for all connections with other hosts. They speak TLS 1.3.
struct TcpOptions {
  std::string bind = "127.0.0.1";  // an IPv4 or IPv6 address of this machine, or 0.0.0.0 or :: for all of them
  std::uint16_t first_port = 0;    // the first free one of first_port … last_port is taken; 0: any
  std::uint16_t last_port = 0;     // 0: first_port is the only one
  std::string advertise{};         // the address that peers call; empty: `bind`, which must be one then
  std::optional<TlsFiles> files{};
};

struct SocketOptions {
  std::uint64_t lineage = 0;
  // For connections within this host: a directory of this user's alone, which is made if it is not there. Its path has
  // at most kLongestRuntimeDirectory bytes. Empty: everybody is called over TCP.
  std::filesystem::path runtime_directory{};
  std::optional<TcpOptions> tcp{};  // needs a secret; nothing: other hosts cannot connect
  HandshakeSeal seal{};             // keyed with the job's secret, the same for all workers; empty: there is no secret
  LogHook log{};                    // may be empty
};
inline constexpr std::size_t kLongestRuntimeDirectory = 64;

// Connects processes over AF_UNIX where both are on one host (the same boot of it, and the path of the socket can be
// opened), else over TLS 1.3. Each pair has one lifeline and one connection per channel.
//
// Over AF_UNIX the kernel says that the other side is a process of this user. Over TLS both sides prove that they have
// the job's secret, or a certificate of the same authority. On top of that every connection proves the job's secret,
// lineage, generation, try and worker ids, bound to that very TLS session.
//
// kInvalidArgument: no port is free, the address is not this machine's, neither way to connect is there, or the
// directory is not this user's alone. With a port the latter is only logged, and everybody is called over TCP.
Result<std::unique_ptr<PeerConnector>> listen_for_peers(const SocketOptions& options);

}  // namespace everstep::trainer
