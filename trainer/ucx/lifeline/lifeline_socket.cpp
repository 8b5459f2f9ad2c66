#include "trainer/ucx/lifeline/lifeline_socket.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/text.h"

namespace everstep::trainer {
namespace {

std::optional<sockaddr_in> to_socket_address(const LifelineAddress& address) {
  sockaddr_in socket_address{};
  socket_address.sin_family = AF_INET;
  socket_address.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, address.host.c_str(), &socket_address.sin_addr) != 1) return std::nullopt;
  return socket_address;
}

FileDescriptor new_socket() { return FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

void set_option(const FileDescriptor& socket, int level, int name, int value) {
  EVERSTEP_CHECK(::setsockopt(socket.get(), level, name, &value, sizeof value) == 0, "setsockopt failed");
}

Error no_socket() { return {ErrorCode::kUnavailable, "cannot make a socket: " + errno_text(errno), {}}; }

// Whether the port was free.
Result<bool> take_port(const FileDescriptor& socket, const LifelineAddress& address) {
  const std::optional<sockaddr_in> wanted = to_socket_address(address);
  if (!wanted) return invalid_argument("'" + address.host + "' is not an IPv4 address", "give it in digits: 127.0.0.1");
  const auto* const raw = reinterpret_cast<const sockaddr*>(&*wanted);
  if (::bind(socket.get(), raw, sizeof *wanted) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) return true;
  if (errno == EADDRINUSE) return false;
  return invalid_argument("cannot listen at " + to_text(address) + ": " + errno_text(errno),
                          "is this an address of this machine?");
}

std::uint16_t port_of(const FileDescriptor& socket) {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  EVERSTEP_CHECK(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0, "getsockname failed");
  return ntohs(bound.sin_port);
}

}  // namespace

std::string to_text(const LifelineAddress& address) { return address.host + ":" + std::to_string(address.port); }

Result<LifelineAddress> parse_lifeline_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const auto port =
      colon == std::string_view::npos ? std::nullopt : parse_number<std::uint16_t>(text.substr(colon + 1));
  const LifelineAddress address{std::string(text.substr(0, colon)), port.value_or(0)};
  if (address.port != 0 && to_socket_address(address) && to_text(address) == text) return address;
  return invalid_argument("'" + std::string(text) + "' is not the address of a worker", "such as 10.0.0.7:4711");
}

Result<ListeningSocket> listen_for_lifelines(const LifelineRange& range) {
  const int last = std::max(range.first_port, range.last_port);
  for (int port = range.first_port; port <= last; ++port) {
    const LifelineAddress address{range.host, static_cast<std::uint16_t>(port)};
    FileDescriptor socket = new_socket();
    if (!socket.is_open()) return no_socket();
    set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
    const Result<bool> free = take_port(socket, address);
    if (!free) return free.error();
    const std::uint16_t taken = *free ? port_of(socket) : 0;
    if (*free) return ListeningSocket{std::move(socket), {range.host, taken}};
  }
  const bool one = last == range.first_port;
  return invalid_argument(
      (one ? "port " + std::to_string(last)
           : "every port from " + std::to_string(range.first_port) + " to " + std::to_string(last)) +
          " of " + range.host + " is in use",
      "choose another one, or 0 for any");
}

Result<FileDescriptor> call_lifeline(const LifelineAddress& address) {
  const std::optional<sockaddr_in> to = to_socket_address(address);
  if (!to) return invalid_argument("'" + address.host + "' is not an IPv4 address");
  FileDescriptor socket = new_socket();
  if (!socket.is_open()) return no_socket();
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*to), sizeof *to) != 0 && errno != EINPROGRESS) {
    return Error{ErrorCode::kUnavailable, errno_text(errno), {}};
  }
  return socket;
}

int call_error(const FileDescriptor& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

void notice_lost_host(const FileDescriptor& socket) {
  // From the first time that something is sent again.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 1800);
  // As often as possible until then, and without waiting for the answer to what was sent before.
  set_option(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
}

std::string errno_text(int error) { return std::strerror(error); }  // NOLINT(concurrency-mt-unsafe)

}  // namespace everstep::trainer
