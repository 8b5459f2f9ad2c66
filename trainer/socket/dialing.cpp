#include "trainer/socket/dialing.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/check.h"
#include "base/text.h"
#include "trainer/wire/byte_codec.h"
#include "trainer/wire/frame.h"

namespace everstep::trainer {
namespace {

// The kernel would take up to 4 MiB for each of five connections per peer. This much lets a usual frame leave in one
// call.
constexpr int kSocketBuffer = 1 << 20;
constexpr const char* kSocketEnding = ".sock";

// An address of either family, as the calls of the kernel take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

template <typename Family>
SocketAddress stored(const Family& address) {
  SocketAddress stored{{}, sizeof address};
  std::memcpy(&stored.storage, &address, sizeof address);
  return stored;
}

Result<SocketAddress> to_socket_address(const TcpAddress& address) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, address.host.c_str(), &v4.sin_addr) == 1) return stored(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(address.port);
  if (::inet_pton(AF_INET6, address.host.c_str(), &v6.sin6_addr) == 1) return stored(v6);
  return invalid_argument("'" + address.host + "' is not an IP address", "give it in digits: 127.0.0.1 or fd00::7");
}

FileDescriptor new_socket(int family) {
  return FileDescriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void set_option(int socket, int level, int name, int value) {
  EVERSTEP_CHECK(::setsockopt(socket, level, name, &value, sizeof value) == 0, "setsockopt failed");
}

// It says nothing about those who might be called.
Error no_socket() { return {ErrorCode::kDeadlineExceeded, "cannot make a socket: " + errno_text(errno), {}}; }

std::uint16_t port_of(const FileDescriptor& socket) {
  SocketAddress bound;
  bound.size = sizeof bound.storage;
  EVERSTEP_CHECK(::getsockname(socket.get(), bound.get(), &bound.size) == 0, "getsockname failed");
  return ntohs(bound.storage.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(bound.get())->sin6_port
                                                   : reinterpret_cast<sockaddr_in*>(bound.get())->sin_port);
}

// Nothing: the port is in use.
Result<std::optional<TcpListener>> take_port(const TcpAddress& address) {
  const Result<SocketAddress> wanted = to_socket_address(address);
  if (!wanted) return wanted.error();
  FileDescriptor socket = new_socket(wanted->storage.ss_family);
  if (!socket.is_open()) return no_socket();
  set_option(socket.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (wanted->storage.ss_family == AF_INET6) set_option(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  bound_buffers(socket.get());  // what is accepted inherits these
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (::bind(socket.get(), wanted->get(), wanted->size) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) {
    const std::uint16_t port = port_of(socket);
    return std::optional<TcpListener>(TcpListener{std::move(socket), port});
  }
  if (errno == EADDRINUSE) return std::optional<TcpListener>();
  return invalid_argument("cannot listen at " + to_text(address) + ": " + errno_text(errno),
                          "is this an address of this machine?");
}

Result<SocketAddress> to_unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return invalid_argument("the path of a socket is too long: " + path, "use a directory with a shorter name");
  }
  path.copy(address.sun_path, path.size());
  return stored(address);
}

Error not_ours(const std::filesystem::path& directory, const std::string& why) {
  return invalid_argument("cannot use " + directory.string() + " for sockets: " + why,
                          "remove it, or set XDG_RUNTIME_DIR to a directory of your own");
}

// Ours alone, so that no other user can call a worker or stand in for one.
Status make_private(const std::filesystem::path& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return not_ours(directory, errno_text(errno));
  struct stat found {};
  if (::lstat(directory.c_str(), &found) != 0) return not_ours(directory, errno_text(errno));
  if (!S_ISDIR(found.st_mode)) return not_ours(directory, "it is no directory");
  if (found.st_uid != ::geteuid()) return not_ours(directory, "it belongs to another user");
  if ((found.st_mode & 077) != 0) return not_ours(directory, "other users may enter it");
  return {};
}

// Tells directories apart that have one path in different containers: the path of a socket in one of them must not lead
// to somebody else's in another.
std::string mark_of(const std::filesystem::path& directory) {
  struct stat found {};
  EVERSTEP_CHECK(::stat(directory.c_str(), &found) == 0, "a directory is gone at once");
  WireWriter identity;
  identity.put(static_cast<std::uint64_t>(found.st_dev));
  identity.put(static_cast<std::uint64_t>(found.st_ino));
  constexpr std::size_t kDigits = 8;
  return hex_text(byte_checksum(identity.bytes())).substr(kDigits);
}

bool nobody_listens(const std::string& path) {
  const Result<FileDescriptor> call = call_unix(path);
  return !call && call.error().code == ErrorCode::kUnavailable;
}

void remove_sockets_of_the_dead(const std::filesystem::path& directory) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (entry.path().extension() == kSocketEnding && nobody_listens(entry.path())) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
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

Result<UnixListener> UnixListener::listen(const std::filesystem::path& directory, const std::string& name) {
  EVERSTEP_TRY(make_private(directory));
  // A socket that is bound and not listened on yet looks as if its owner were dead.
  const FileDescriptor turn(::open((directory / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!turn.is_open() || ::flock(turn.get(), LOCK_EX) != 0) return not_ours(directory, errno_text(errno));
  remove_sockets_of_the_dead(directory);
  const std::string marked = name + "-" + mark_of(directory);
  for (int twin = 0;; ++twin) {
    std::string path = directory / (marked + (twin == 0 ? "" : "-" + std::to_string(twin)) + kSocketEnding);
    const Result<SocketAddress> address = to_unix_address(path);
    if (!address) return address.error();
    FileDescriptor socket = new_socket(AF_UNIX);
    if (!socket.is_open()) return no_socket();
    if (::bind(socket.get(), address->get(), address->size) == 0 && ::listen(socket.get(), SOMAXCONN) == 0) {
      return UnixListener(std::move(socket), std::move(path));
    }
    if (errno != EADDRINUSE) return not_ours(directory, errno_text(errno));
  }
}

UnixListener::~UnixListener() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<FileDescriptor> call_tcp(const TcpAddress& address) {
  const Result<SocketAddress> to = to_socket_address(address);
  if (!to) return to.error();
  FileDescriptor socket = new_socket(to->storage.ss_family);
  if (!socket.is_open()) return no_socket();
  bound_buffers(socket.get());
  set_option(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  if (::connect(socket.get(), to->get(), to->size) == 0 || errno == EINPROGRESS) return socket;
  // That this host does not reach a network is no sign of anybody's death.
  return Error{errno == ECONNREFUSED ? ErrorCode::kUnavailable : ErrorCode::kDeadlineExceeded, errno_text(errno), {}};
}

Result<FileDescriptor> call_unix(const std::string& path) {
  const Result<SocketAddress> to = to_unix_address(path);
  if (!to) return to.error();
  FileDescriptor socket = new_socket(AF_UNIX);
  if (!socket.is_open()) return no_socket();
  if (::connect(socket.get(), to->get(), to->size) == 0) return socket;
  const bool nobody = errno == ECONNREFUSED || errno == ENOENT;
  return Error{nobody ? ErrorCode::kUnavailable : ErrorCode::kDeadlineExceeded, errno_text(errno), {}};
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

void notice_lost_host(int socket) {
  // From the first time that something is sent again.
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, 1800);
  // As often as possible until then, and without waiting for the answer to what was sent before.
  set_option(socket, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

std::string boot_id() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id") >> std::ws, id);
  return id.empty() ? "unknown" : id;
}

std::string errno_text(int error) { return std::strerror(error); }  // NOLINT(concurrency-mt-unsafe)

}  // namespace everstep::trainer
