#pragma once

#include <cstring>
#include <string>

#include <sys/socket.h>

#include "base/result.h"
#include "trainer/socket/file_descriptor.h"

// What sockets of all families have in common.
namespace everstep::trainer {

// An address of any family, as the calls of the kernel take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;

  template <typename Family>
  static SocketAddress of(const Family& address) {
    SocketAddress stored;
    std::memcpy(&stored.storage, &address, sizeof address);
    stored.size = sizeof address;
    return stored;
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// A stream socket that does not block. kDeadlineExceeded: none can be had, which says nothing about those who might be
// called.
Result<FileDescriptor> new_socket(int family);

void set_option(int socket, int level, int name, int value);

// Bounds what the kernel keeps for a socket, in each direction. A TCP socket that is accepted inherits this from the
// one that listens. An AF_UNIX socket does not: it is bounded itself.
void bound_buffers(int socket);

// How a call that was begun ended: 0 or an errno.
int call_error(int socket);

std::string errno_text(int error);

}  // namespace everstep::trainer
