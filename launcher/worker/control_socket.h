#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace everstep::launcher {

// Where a worker finds its end of the control socket.
inline constexpr int kControlDescriptor = 3;

// One end of the connection between a worker process and its supervisor. It keeps the bounds of messages. Several
// threads may send at once, one may receive.
class ControlSocket {
 public:
  // Both ends; neither survives an exec.
  static Result<std::pair<ControlSocket, ControlSocket>> make_pair();

  // Takes the descriptor over.
  explicit ControlSocket(int fd) : fd_(fd) {}
  ControlSocket(ControlSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ControlSocket& operator=(ControlSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~ControlSocket();

  int fd() const { return fd_; }

  // What to do with a message while the other end reads none.
  enum class WhenFull { kWait, kDrop };

  // False when the other end is gone, or the message was dropped.
  bool send(std::string_view message, WhenFull when_full = WhenFull::kWait) const;

  // Waits for a message; nothing when the other end is gone.
  std::optional<std::string> receive() const;

  // Whether receive() would return at once. Negative waits for ever.
  bool readable(int timeout_ms) const;

 private:
  int fd_;
};

}  // namespace everstep::launcher
