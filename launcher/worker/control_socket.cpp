#include "launcher/worker/control_socket.h"

#include <array>
#include <cerrno>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace everstep::launcher {

Result<std::pair<ControlSocket, ControlSocket>> ControlSocket::make_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Error{ErrorCode::kUnavailable, "cannot make a socket: " + std::generic_category().message(errno), ""};
  }
  return std::pair(ControlSocket(ends[0]), ControlSocket(ends[1]));
}

ControlSocket::~ControlSocket() {
  if (fd_ >= 0) ::close(fd_);
}

bool ControlSocket::send(std::string_view message, WhenFull when_full) const {
  const int flags = MSG_NOSIGNAL | (when_full == WhenFull::kDrop ? MSG_DONTWAIT : 0);
  while (::send(fd_, message.data(), message.size(), flags) < 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

std::optional<std::string> ControlSocket::receive() const {
  const auto retried = [this](char* data, std::size_t size, int flags) {
    ssize_t count = -1;
    do {
      count = ::recv(fd_, data, size, flags);
    } while (count < 0 && errno == EINTR);
    return count;
  };
  // No message is empty: 0 is the end.
  const ssize_t size = retried(nullptr, 0, MSG_PEEK | MSG_TRUNC);
  if (size <= 0) return std::nullopt;
  std::string message(static_cast<std::size_t>(size), '\0');
  if (retried(message.data(), message.size(), 0) != size) return std::nullopt;
  return message;
}

bool ControlSocket::readable(int timeout_ms) const {
  pollfd entry{fd_, POLLIN, 0};
  return ::poll(&entry, 1, timeout_ms) > 0;
}

}  // namespace everstep::launcher
