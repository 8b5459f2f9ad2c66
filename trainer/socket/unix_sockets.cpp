#include "trainer/socket/unix_sockets.h"

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/text.h"
#include "trainer/socket/sockets.h"
#include "trainer/wire/byte_codec.h"
#include "trainer/wire/frame.h"

namespace everstep::trainer {
namespace {

constexpr const char* kSocketEnding = ".sock";

Result<SocketAddress> to_unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return invalid_argument("the path of a socket is too long: " + path, "use a directory with a shorter name");
  }
  path.copy(address.sun_path, path.size());
  return SocketAddress::of(address);
}

Error not_ours(const std::filesystem::path& directory, const std::string& why) {
  return invalid_argument("cannot use " + directory.string() + " for sockets: " + why,
                          "remove it, or set XDG_RUNTIME_DIR to a directory of your own");
}

// Whether this worker may make its socket: one after the other. A signal does not end the waiting.
bool await_turn(const FileDescriptor& turn) {
  int failed = 0;
  do failed = ::flock(turn.get(), LOCK_EX);
  while (failed != 0 && errno == EINTR);
  return failed == 0;
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

Status make_private_directory(const std::filesystem::path& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return not_ours(directory, errno_text(errno));
  struct stat found {};
  if (::lstat(directory.c_str(), &found) != 0) return not_ours(directory, errno_text(errno));
  if (!S_ISDIR(found.st_mode)) return not_ours(directory, "it is no directory");
  if (found.st_uid != ::geteuid()) return not_ours(directory, "it belongs to another user");
  if ((found.st_mode & 077) != 0) return not_ours(directory, "other users may enter it");
  return {};
}

Result<UnixListener> UnixListener::listen(const std::filesystem::path& directory, const std::string& name) {
  EVERSTEP_TRY(make_private_directory(directory));
  // A socket that is bound and not listened on yet looks as if its owner were dead.
  const FileDescriptor turn(::open((directory / "lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!turn.is_open() || !await_turn(turn)) return not_ours(directory, errno_text(errno));
  remove_sockets_of_the_dead(directory);
  const std::string marked = name + "-" + mark_of(directory);
  for (int twin = 0;; ++twin) {
    std::string path = directory / (marked + (twin == 0 ? "" : "-" + std::to_string(twin)) + kSocketEnding);
    const Result<SocketAddress> address = to_unix_address(path);
    if (!address) return address.error();
    Result<FileDescriptor> socket = new_socket(AF_UNIX);
    if (!socket) return socket.error();
    if (::bind(socket->get(), address->get(), address->size) == 0 && ::listen(socket->get(), SOMAXCONN) == 0) {
      return UnixListener(std::move(*socket), std::move(path));
    }
    if (errno != EADDRINUSE) return not_ours(directory, errno_text(errno));
  }
}

UnixListener::~UnixListener() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

Result<FileDescriptor> call_unix(const std::string& path) {
  const Result<SocketAddress> to = to_unix_address(path);
  if (!to) return to.error();
  Result<FileDescriptor> socket = new_socket(AF_UNIX);
  if (!socket) return socket;
  if (::connect(socket->get(), to->get(), to->size) == 0) return socket;
  if (errno == EAGAIN) return FileDescriptor();
  const bool nobody = errno == ECONNREFUSED || errno == ENOENT;
  return Error{nobody ? ErrorCode::kUnavailable : ErrorCode::kDeadlineExceeded, errno_text(errno), {}};
}

}  // namespace everstep::trainer
