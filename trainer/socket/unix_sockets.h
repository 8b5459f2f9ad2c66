#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"
#include "trainer/socket/file_descriptor.h"

// Sockets in the file system of one host.
namespace everstep::trainer {

// Makes it if it is not there. kInvalidArgument: it is not this user's alone, so that others could call a worker or
// stand in for one.
Status make_private_directory(const std::filesystem::path& directory);

// A socket whose path goes with the object.
class UnixListener {
 public:
  // In a directory that is this user's alone (it is made if it is not there), with a name that begins with `name`.
  // Sockets there that nobody listens on any more are removed. kInvalidArgument: others may use the directory.
  static Result<UnixListener> listen(const std::filesystem::path& directory, const std::string& name);

  UnixListener(UnixListener&& other) noexcept
      : socket_(std::move(other.socket_)), path_(std::exchange(other.path_, {})) {}
  UnixListener& operator=(UnixListener&&) = delete;
  // Whoever has taken the socket has to listen until then: a path that nobody listens at may be somebody else's soon.
  ~UnixListener();

  const std::string& path() const { return path_; }
  FileDescriptor take_socket() { return std::move(socket_); }

 private:
  UnixListener(FileDescriptor socket, std::string path) : socket_(std::move(socket)), path_(std::move(path)) {}

  FileDescriptor socket_;
  std::string path_;
};

// Connects at once. Not open: somebody listens, and too many callers wait there already; call again. Errors:
// kUnavailable nobody listens there · kDeadlineExceeded nobody knows.
Result<FileDescriptor> call_unix(const std::string& path);

}  // namespace everstep::trainer
