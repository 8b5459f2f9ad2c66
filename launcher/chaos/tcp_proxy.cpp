#include "launcher/chaos/tcp_proxy.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace everstep::launcher::chaos {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Mode = TcpProxy::Mode;

constexpr milliseconds kLook{1};
constexpr milliseconds kDelay{200};

sockaddr_in address_of(const char* host, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &address.sin_addr);
  return address;
}

const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

struct Piece {
  Clock::time_point due;
  std::string bytes;
};

// One direction of one connection.
class Way {
 public:
  Way(int from, int to) : from_(from), to_(to) {}

  // Takes what has come and hands on what is due. False: this direction is at its end.
  bool turn(Mode mode) {
    if (mode == Mode::kHold) return true;
    if (!has_ended_) read(mode);
    while (!pieces_.empty() && pieces_.front().due <= Clock::now()) {
      const std::string& bytes = pieces_.front().bytes;
      const ssize_t sent = ::send(to_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent != std::ssize(bytes)) return false;
      pieces_.pop_front();
    }
    return !has_ended_ || !pieces_.empty();
  }

 private:
  void read(Mode mode) {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::recv(from_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) {
      has_ended_ = true;
      return;
    }
    Piece piece{Clock::now() + (mode == Mode::kDelay ? kDelay : milliseconds(0)),
                {buffer.data(), static_cast<std::size_t>(count)}};
    if (mode == Mode::kCorrupt) piece.bytes.back() = static_cast<char>(piece.bytes.back() ^ 1);
    pieces_.push_back(std::move(piece));
  }

  int from_;
  int to_;
  bool has_ended_ = false;
  std::deque<Piece> pieces_;
};

class Connection {
 public:
  Connection(int caller, int called)
      : caller_(caller), called_(called), there_(caller, called), back_(called, caller) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    ::close(caller_);
    ::close(called_);
  }

  bool turn(Mode mode) {
    const bool there_lives = there_.turn(mode);
    return back_.turn(mode) && there_lives;
  }

 private:
  int caller_;
  int called_;
  Way there_;
  Way back_;
};

}  // namespace

Result<std::unique_ptr<TcpProxy>> TcpProxy::start(int port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  const sockaddr_in address = address_of(kAddress, port);
  constexpr int kBacklog = 64;
  if (::bind(listener, generic(address), sizeof address) != 0 || ::listen(listener, kBacklog) != 0) {
    const std::string why = std::generic_category().message(errno);
    ::close(listener);
    return Error{ErrorCode::kUnavailable, "cannot listen at " + std::string(kAddress) + ": " + why, ""};
  }
  return std::unique_ptr<TcpProxy>(new TcpProxy(listener, port));
}

TcpProxy::TcpProxy(int listener, int port) : listener_(listener), port_(port), thread_([this] { run(); }) {}

TcpProxy::~TcpProxy() {
  is_over_ = true;
  thread_.join();
  ::close(listener_);
}

void TcpProxy::run() {
  std::list<Connection> connections;
  const sockaddr_in worker = address_of("127.0.0.1", port_);
  while (!is_over_) {
    for (int caller = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); caller >= 0;
         caller = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) {
      const int called = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      const bool is_there = ::connect(called, generic(worker), sizeof worker) == 0;
      connections.emplace_back(caller, called);
      if (!is_there) connections.pop_back();
    }
    connections.remove_if([&](Connection& one) { return !one.turn(mode_); });
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace everstep::launcher::chaos
