#include "trainer/socket/plain_stream.h"

#include <cerrno>
#include <string>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "trainer/socket/sockets.h"

namespace everstep::trainer {
namespace {

using Kind = StreamResult::Kind;

msghdr message_of(std::span<const iovec> parts) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts.data());  // the kernel only reads them
  message.msg_iovlen = parts.size();
  return message;
}

StreamResult of_errno(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return {};
  if (error == ECONNRESET || error == EPIPE) return {Kind::kBroken, 0, std::string(kHungUp)};
  return {Kind::kBroken, 0, errno_text(error)};
}

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(FileDescriptor socket) : socket_(std::move(socket)) {}

  int descriptor() const override { return socket_.get(); }
  StreamResult negotiate() override { return {Kind::kMoved}; }
  short awaited() const override { return POLLOUT; }
  StreamResult read(std::span<const iovec> into) override { return read_socket(socket_.get(), into); }
  StreamResult write(std::span<const iovec> from) override { return write_socket(socket_.get(), from); }
  bool has_unsent() const override { return false; }
  StreamResult flush() override { return {Kind::kMoved}; }
  bool has_unread() const override { return false; }
  void end_writing() override { ::shutdown(socket_.get(), SHUT_WR); }
  void notice_lost_host() override {}  // it is this one
  std::string binding() const override { return {}; }
  bool encrypts() const override { return false; }
  std::string_view name() const override { return "unix"; }

 private:
  FileDescriptor socket_;
};

}  // namespace

StreamResult read_socket(int socket, std::span<const iovec> into) {
  msghdr message = message_of(into);
  ssize_t count = 0;
  do count = ::recvmsg(socket, &message, MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count > 0) return {Kind::kMoved, static_cast<std::size_t>(count)};
  return count == 0 ? StreamResult{Kind::kEnded} : of_errno(errno);
}

StreamResult write_socket(int socket, std::span<const iovec> from) {
  const msghdr message = message_of(from);
  ssize_t count = 0;
  do count = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  while (count < 0 && errno == EINTR);
  return count >= 0 ? StreamResult{Kind::kMoved, static_cast<std::size_t>(count)} : of_errno(errno);
}

Result<std::unique_ptr<ByteStream>> make_plain_stream(FileDescriptor socket) {
  ucred other{};
  socklen_t size = sizeof other;
  EVERSTEP_CHECK(::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0, "SO_PEERCRED failed");
  if (other.uid != ::geteuid()) {
    return invalid_argument("it is a process of another user (uid " + std::to_string(other.uid) + ")");
  }
  bound_buffers(socket.get());
  return std::unique_ptr<ByteStream>(std::make_unique<PlainStream>(std::move(socket)));
}

}  // namespace everstep::trainer
