#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/peer_address.h"

// Sockets between hosts.
namespace everstep::trainer {

struct TcpRange {
  std::string host;              // in digits
  std::uint16_t first_port = 0;  // 0: any
  std::uint16_t last_port = 0;
};

struct TcpListener {
  FileDescriptor socket;
  std::uint16_t port = 0;
};

// Takes the first free port. kInvalidArgument names host and port if none can be had. With the host :: IPv4 callers are
// heard, too.
Result<TcpListener> listen_on_tcp(const TcpRange& range);

// Begins to call; the socket becomes writable when it is decided. At once: kUnavailable nobody listens there ·
// kDeadlineExceeded nobody knows.
Result<FileDescriptor> call_tcp(const TcpAddress& address);

// For lifelines. A process that dies closes its sockets; a host that dies, or a cable, does not. The kernel gives a
// connection up when what was written to it has not been answered for some 2 s, after eight tries or more. A process
// that is only stopped keeps it. Not for connections that are not always read: a closed window counts as silence.
void notice_lost_host(int socket);

}  // namespace everstep::trainer
