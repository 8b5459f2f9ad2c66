#include "trainer/socket/dialing.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/check.h"
#include "trainer/socket/ip_address.h"
#include "trainer/socket/sockets.h"

namespace everstep::trainer {
namespace {

Result<SocketAddress> to_socket_address(const TcpAddress& address) {
  const std::optional<IpAddress> ip = parse_ip(address.host);
  if (!ip) {
    return invalid_argument("'" + address.host + "' is not an IP address", "give it in digits: 127.0.0.1 or fd00::7");
  }
  if (const auto* host = std::get_if<in_addr>(&*ip)) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(address.port);
    v4.sin_addr = *host;
    return SocketAddress::of(v4);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  v6.sin6_addr = std::get<in6_addr>(*ip);
  return SocketAddress::of(v6);
}

std::uint16_t port_of(const FileDescriptor& socket) {
  SocketAddress bound;
  EVERSTEP_CHECK(::getsockname(socket.get(), bound.get(), &bound.size) == 0, "getsockname failed");
  return ntohs(bound.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(bound.get())->sin6_port
                                                   : reinterpret_cast<sockaddr_in*>(bound.get())->sin_port);
}

// What is accepted inherits all of it from the socket that listens.
Result<FileDescriptor> new_tcp_socket(int family) {
  Result<FileDescriptor> socket = new_socket(family);
  if (!socket) return socket;
  bound_buffers(socket->get());
  set_option(socket->get(), IPPROTO_TCP, TCP_NODELAY, 1);
  return socket;
}

// Nothing: the port is in use.
Result<std::optional<TcpListener>> take_port(const TcpAddress& address) {
  const Result<SocketAddress> wanted = to_socket_address(address);
  if (!wanted) return wanted.error();
  Result<FileDescriptor> socket = new_tcp_socket(wanted->storage.ss_family);
  if (!socket) return socket.error();
  set_option(socket->get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (wanted->storage.ss_family == AF_INET6) set_option(socket->get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (::bind(socket->get(), wanted->get(), wanted->size) == 0 && ::listen(socket->get(), SOMAXCONN) == 0) {
    const std::uint16_t port = port_of(*socket);
    return std::optional<TcpListener>(TcpListener{std::move(*socket), port});
  }
  if (errno == EADDRINUSE) return std::optional<TcpListener>();
  return invalid_argument("cannot listen at " + to_text(address) + ": " + errno_text(errno),
                          "is this an address of this machine?");
}

}  // namespace

Result<TcpListener> listen_on_tcp(const TcpRange& range) {
  const int last = std::max(range.first_port, range.last_port);
  for (int port = range.first_port; port <= last; ++port) {
    Result<std::optional<TcpListener>> taken = take_port({range.host, static_cast<std::uint16_t>(port)});
    if (!taken) return taken.error();
    if (*taken) return std::move(**taken);
  }
  const bool one = last == range.first_port;
  return invalid_argument(
      (one ? "port " + std::to_string(last)
           : "every port from " + std::to_string(range.first_port) + " to " + std::to_string(last)) +
          " of " + range.host + " is in use",
      "choose another one, or 0 for any");
}

Result<FileDescriptor> call_tcp(const TcpAddress& address) {
  const Result<SocketAddress> to = to_socket_address(address);
  if (!to) return to.error();
  Result<FileDescriptor> socket = new_tcp_socket(to->storage.ss_family);
  if (!socket) return socket;
  if (::connect(socket->get(), to->get(), to->size) == 0 || errno == EINPROGRESS) return socket;
  // That this host does not reach a network is no sign of anybody's death.
  return Error{errno == ECONNREFUSED ? ErrorCode::kUnavailable : ErrorCode::kDeadlineExceeded, errno_text(errno), {}};
}

void notice_lost_host(int socket) {
  // From the first time that something is sent again.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 1800);
  // As often as possible until then, and without waiting for the answer to what was sent before.
  set_option(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

}  // namespace everstep::trainer
