#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "trainer/socket/file_descriptor.h"
#include "trainer/socket/peer_address.h"

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

// A socket in the file system, which goes with the object.
class UnixListener {
 public:
  // In a directory that is this user's alone (it is made if it is not there), with a name that begins with `name`.
  // Sockets there that nobody listens on any more are removed. kInvalidArgument: others may use the directory.
  static Result<UnixListener> listen(const std::filesystem::path& directory, const std::string& name);

  UnixListener(UnixListener&& other) noexcept
      : socket_(std::move(other.socket_)), path_(std::exchange(other.path_, {})) {}
  UnixListener& operator=(UnixListener&&) = delete;
  ~UnixListener();

  const std::string& path() const { return path_; }
  FileDescriptor take_socket() { return std::move(socket_); }

 private:
  UnixListener(FileDescriptor socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}

  FileDescriptor socket_;
  std::string path_;
};

// Begins to call; the socket becomes writable when it is decided. At once: kUnavailable nobody listens there ·
// kDeadlineExceeded nobody knows.
Result<FileDescriptor> call_tcp(const TcpAddress& address);

// Connects at once. The same errors.
Result<FileDescriptor> call_unix(const std::string& path);

// What the kernel may take for a socket. One that is accepted over TCP has what the listening one has; over AF_UNIX it
// has not.
void bound_buffers(int socket);

// How a call that was begun ended: 0 or an errno.
int call_error(int socket);

// For lifelines over TCP. A process that dies closes its sockets; a host that dies, or a cable, does not. The kernel
// gives a connection up when what was written to it has not been answered for some 2 s, after eight tries or more. A
// process that is only stopped keeps it. Not for connections that are not always read: a closed window counts as
// silence.
void notice_lost_host(int socket);

// This boot of this host.
std::string boot_id();

std::string errno_text(int error);

}  // namespace everstep::trainer
