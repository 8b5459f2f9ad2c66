#include "launcher/worker/worker_wire.h"

#include "base/log_line.h"
#include "launcher/worker/runtime_directory.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/socket_connector.h"

namespace everstep::launcher {
namespace {

trainer::TcpOptions tcp_options(const WireOptions& wire) {
  trainer::TcpOptions tcp;
  tcp.bind = wire.bind;
  tcp.advertise = wire.advertise;
  if (wire.port_range) {
    tcp.first_port = static_cast<std::uint16_t>(wire.port_range->first);
    tcp.last_port = static_cast<std::uint16_t>(wire.port_range->second);
  }
  if (!wire.tls_ca.empty()) tcp.files = trainer::TlsFiles{wire.tls_ca, wire.tls_cert, wire.tls_key};
  return tcp;
}

}  // namespace

Result<std::unique_ptr<trainer::PeerConnector>> listen_for_workers(const WireOptions& wire, const JobSecret& secret,
                                                                   const WirePlace& place) {
  trainer::SocketOptions options;
  options.lineage = place.lineage;
  if (!wire.tcp_only) options.runtime_directory = place.runtime_directory;
  if (secret.is_set()) options.tcp = tcp_options(wire);
  options.seal = secret.handshake_seal();
  options.log = place.log;
  auto connector = trainer::listen_for_peers(options);
  if (connector || !options.tcp || wire.tcp_only) return connector;
  options.runtime_directory.clear();
  auto over_tcp_alone = trainer::listen_for_peers(options);
  if (over_tcp_alone) place.log(LogLine("no_unix_sockets").add("reason", connector.error().line()).text());
  return over_tcp_alone;
}

trainer::PeerAddress expected_address(const WireOptions& wire, bool has_secret) {
  trainer::PeerAddress address;
  if (has_secret) address.tcp = trainer::TcpAddress{wire.advertise.empty() ? wire.bind : wire.advertise};
  if (!wire.tcp_only) address.local = trainer::UnixAddress{trainer::boot_id(), runtime_directory()};
  return address;
}

}  // namespace everstep::launcher
