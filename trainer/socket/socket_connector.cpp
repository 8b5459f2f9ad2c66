#include "trainer/socket/socket_connector.h"

#include <utility>

#include <unistd.h>

#include "base/check.h"
#include "base/log_line.h"
#include "trainer/socket/boot_id.h"
#include "trainer/socket/call_port.h"
#include "trainer/socket/dialer.h"
#include "trainer/socket/dialing.h"
#include "trainer/socket/handshake.h"
#include "trainer/socket/ip_address.h"
#include "trainer/socket/lifelines.h"
#include "trainer/socket/plain_stream.h"
#include "trainer/socket/socket_session.h"
#include "trainer/socket/unix_sockets.h"

namespace everstep::trainer {
namespace {

// All that a worker listens on, and what it needs to call others.
struct Ground {
  PeerAddress address;
  std::unique_ptr<TlsContext> tls;
  std::vector<Entrance> entrances;
  std::optional<UnixListener> unix_socket;  // goes first: see UnixListener
};

class Connector final : public PeerConnector {
 public:
  Connector(const SocketOptions& options, Ground ground)
      : options_(options),
        tls_(std::move(ground.tls)),
        address_(to_text(ground.address)),
        dialer_({ground.address.local ? ground.address.local->boot : "", tls_.get(), options.lineage}),
        closing_(std::make_shared<ClosingStreams>()),
        port_(std::move(ground.entrances), limit_rate(options.log)),
        unix_socket_(std::move(ground.unix_socket)) {
    if (!options_.seal) options_.seal = unkeyed_seal;
  }

  const std::string& address() const override { return address_; }

  ConnectOutcome connect(const PeerRoster& roster, std::chrono::milliseconds timeout) override {
    Result<HandshakeRequest> request = request_for(roster);
    if (!request) return {request.error()};
    const auto inbox = port_.open({roster.lineage, roster.generation, roster.nonce});
    if (!inbox) return {inbox.error()};
    ConnectOutcome outcome = connect(**inbox, *request, timeout);
    port_.close(**inbox);
    return outcome;
  }

  void give_up(Generation generation, std::uint32_t nonce) override { port_.give_up(generation, nonce); }

  std::int64_t fenced() const override { return port_.fenced(); }

 private:
  Result<HandshakeRequest> request_for(const PeerRoster& roster) const {
    EVERSTEP_CHECK(roster.worker >= 0 && roster.worker < static_cast<int>(roster.members.size()),
                   "a worker connects a roster that it is no member of");
    EVERSTEP_CHECK(roster.lineage == options_.lineage, "a worker connects a roster of another lineage");
    HandshakeRequest request{roster.worker, {}, dialer_, *closing_, options_.seal, limit_rate(options_.log)};
    for (const PeerMember& member : roster.members) {
      Result<PeerAddress> address = parse_peer_address(member.address);
      if (!address) return address.error();
      request.members.push_back({member.id, std::move(address).value(), member.name});
    }
    return request;
  }

  ConnectOutcome connect(CallInbox& inbox, const HandshakeRequest& request, std::chrono::milliseconds timeout) {
    HandshakeOutcome hands = shake_hands(inbox, request, timeout);
    if (!hands.peers) return {hands.peers.error(), hands.lost};
    tell_wires(inbox.attempt(), *hands.peers);
    std::vector<LifelineToPeer> ends;
    std::vector<ChannelStreams> channels;
    for (PeerStreams& peer : *hands.peers) {
      ends.push_back({std::move(peer.lifeline), peer.heard});
      channels.push_back(std::move(peer.channels));
    }
    auto lifelines = std::make_shared<Lifelines>(std::move(ends), closing_);
    const Status alive = lifelines->poll();
    const std::optional<int> gone = lifelines->first_that_gave_up();
    if (!alive || gone) lifelines->give_up();  // the end of these connections is not this worker's
    if (!alive) return {alive.error(), lifelines->lost()};
    if (gone) {
      return {Error{ErrorCode::kUnavailable, "worker " + std::to_string(*gone) + " gave this try up", {}},
              LostPeer{*gone, LostPeer::How::kRefused}};
    }
    return {PeerConnection{make_socket_session(request.worker, std::move(channels), lifelines, closing_), lifelines}};
  }

  // Which way frames take, so that nobody has to guess.
  void tell_wires(const PeerAttempt& attempt, const std::vector<PeerStreams>& peers) const {
    if (!options_.log) return;
    int local = 0;
    int encrypted = 0;
    for (const PeerStreams& peer : peers) {
      if (peer.lifeline) ++(peer.lifeline->encrypts() ? encrypted : local);
    }
    options_.log(LogLine("wired")
                     .add("generation", attempt.generation.value)
                     .add("peers_over_unix", local)
                     .add("peers_over_tls", encrypted)
                     .text());
  }

  SocketOptions options_;
  std::unique_ptr<TlsContext> tls_;
  const std::string address_;
  const Dialer dialer_;
  const std::shared_ptr<ClosingStreams> closing_;
  CallPort port_;
  const std::optional<UnixListener> unix_socket_;  // goes first: see UnixListener
};

Status open_tcp(const SocketOptions& options, Ground& ground) {
  const TcpOptions& tcp = *options.tcp;
  EVERSTEP_CHECK(options.seal != nullptr, "nobody listens for other hosts without a secret");
  Result<std::unique_ptr<TlsContext>> tls = TlsContext::make(options.seal, tcp.files);
  if (!tls) return tls.error();
  ground.tls = std::move(tls).value();
  Result<TcpListener> listener = listen_on_tcp({tcp.bind, tcp.first_port, tcp.last_port});
  if (!listener) return listener.error();
  const std::optional<IpAddress> bound = parse_ip(tcp.bind);
  if (tcp.advertise.empty() && bound && is_any(*bound)) {
    return invalid_argument("nobody can call a worker at " + tcp.bind, "say where they can: --advertise=10.0.0.7");
  }
  const TcpAddress called{tcp.advertise.empty() ? tcp.bind : tcp.advertise, listener->port};
  if (!parse_peer_address(to_text(called))) {
    return invalid_argument("'" + called.host + "' is not an IP address", "give it in digits: 10.0.0.7 or fd00::7");
  }
  ground.address.tcp = called;
  ground.entrances.push_back({std::move(listener->socket),
                              [tls = ground.tls.get(), purpose = TlsPurpose{options.lineage, to_text(called)}](
                                  FileDescriptor socket) -> Result<std::unique_ptr<ByteStream>> {
                                return tls->answer(std::move(socket), purpose);
                              }});
  return {};
}

// Named by the port, where there is one: a worker that comes back to it has the address that it had before. In full,
// since peers start elsewhere.
Status open_unix(const SocketOptions& options, Ground& ground) {
  const std::string directory = std::filesystem::absolute(options.runtime_directory).lexically_normal();
  if (directory.size() > kLongestRuntimeDirectory) {
    return invalid_argument("the path " + directory + " is too long for sockets: it may have " +
                                std::to_string(kLongestRuntimeDirectory) + " bytes",
                            "set XDG_RUNTIME_DIR to a directory with a shorter one");
  }
  const std::string name =
      ground.address.tcp ? "port-" + std::to_string(ground.address.tcp->port) : "process-" + std::to_string(::getpid());
  Result<UnixListener> listener = UnixListener::listen(directory, name);
  if (!listener) return listener.error();
  ground.address.local = UnixAddress{boot_id(), listener->path()};
  ground.entrances.push_back({listener->take_socket(), make_plain_stream});
  ground.unix_socket.emplace(std::move(listener).value());
  return {};
}

// Who has a port can do without.
Status open_unix_if_possible(const SocketOptions& options, Ground& ground) {
  Status opened = open_unix(options, ground);
  if (opened || !options.tcp) return opened;
  if (options.log) options.log(LogLine("no_unix_sockets").add("reason", opened.error().line()).text());
  return {};
}

}  // namespace

Result<std::unique_ptr<PeerConnector>> listen_for_peers(const SocketOptions& options) {
  Ground ground;
  if (options.tcp) EVERSTEP_TRY(open_tcp(options, ground));
  if (!options.runtime_directory.empty()) EVERSTEP_TRY(open_unix_if_possible(options, ground));
  if (ground.entrances.empty()) return invalid_argument("a worker that nobody can call is of no use");
  return std::unique_ptr<PeerConnector>(std::make_unique<Connector>(options, std::move(ground)));
}

}  // namespace everstep::trainer
