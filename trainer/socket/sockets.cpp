#include "trainer/socket/sockets.h"

#include <cerrno>
#include <utility>

#include "base/check.h"

namespace everstep::trainer {
namespace {

// Left to itself the kernel keeps up to 4 MiB for each of the eight connections with a peer. This is enough for a usual
// frame to leave with one call.
constexpr int kSocketBuffer = 1 << 20;

}  // namespace

Result<FileDescriptor> new_socket(int family) {
  FileDescriptor socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) {
    return Error{ErrorCode::kDeadlineExceeded, "cannot make a socket: " + errno_text(errno), {}};
  }
  return socket;
}

void set_option(int socket, int level, int name, int value) {
  EVERSTEP_CHECK(::setsockopt(socket, level, name, &value, sizeof value) == 0, "setsockopt failed");
}

void bound_buffers(int socket) {
  set_option(socket, SOL_SOCKET, SO_SNDBUF, kSocketBuffer);
  set_option(socket, SOL_SOCKET, SO_RCVBUF, kSocketBuffer);
}

int call_error(int socket) {
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

std::string errno_text(int error) { return std::strerror(error); }  // NOLINT(concurrency-mt-unsafe)

}  // namespace everstep::trainer
