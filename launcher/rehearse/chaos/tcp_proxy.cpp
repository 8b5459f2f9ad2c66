#include "launcher/rehearse/chaos/tcp_proxy.h"

#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <string>
#include <system_error>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace everstep::launcher::chaos {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Mode = TcpProxy::Mode;

constexpr milliseconds kLookAtPipes{1};
constexpr milliseconds kDelay{200};
constexpr std::size_t kPiece = 64 << 10;
constexpr std::size_t kMostHeld = 4 << 20;  // in one direction: more than comes in kDelay

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
  std::size_t sent = 0;
};

// One direction of one connection. Nothing here blocks: whoever does not read its bytes holds up nobody else.
class Way {
 public:
  Way(int from, int to) : from_(from), to_(to) {}

  // Takes what has come and hands on what is due. Whether there was something to do.
  bool turn(Mode mode) {
    if (mode == Mode::kHold || is_done()) return false;
    const bool has_read = read(mode);
    return write() || has_read;
  }

  bool is_over() const { return state_ == State::kOver; }      // the end was handed on
  bool is_broken() const { return state_ == State::kBroken; }  // one of the two is gone

 private:
  enum class State : std::uint8_t { kOpen, kEnded, kOver, kBroken };

  bool is_done() const { return is_over() || is_broken(); }

  static bool is_no_error() { return errno == EAGAIN || errno == EINTR; }

  bool read(Mode mode) {
    if (state_ != State::kOpen || held_ >= kMostHeld) return false;
    std::string bytes(kPiece, '\0');
    const ssize_t count = ::recv(from_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && is_no_error()) return false;
    if (count <= 0) {
      state_ = count == 0 ? State::kEnded : State::kBroken;
      return true;
    }
    bytes.resize(static_cast<std::size_t>(count));
    if (mode == Mode::kCorrupt) bytes.back() = static_cast<char>(bytes.back() ^ 1);
    held_ += bytes.size();
    pieces_.push_back({Clock::now() + (mode == Mode::kDelay ? kDelay : milliseconds(0)), std::move(bytes)});
    return true;
  }

  bool write() {
    bool has_written = false;
    while (!pieces_.empty() && pieces_.front().due <= Clock::now()) {
      Piece& piece = pieces_.front();
      const ssize_t sent =
          ::send(to_, piece.bytes.data() + piece.sent, piece.bytes.size() - piece.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) {
        if (!is_no_error()) state_ = State::kBroken;
        return has_written;
      }
      has_written = true;
      piece.sent += static_cast<std::size_t>(sent);
      if (piece.sent < piece.bytes.size()) return true;
      held_ -= piece.bytes.size();
      pieces_.pop_front();
    }
    if (state_ == State::kEnded && pieces_.empty()) {
      ::shutdown(to_, SHUT_WR);
      state_ = State::kOver;
    }
    return has_written;
  }

  int from_;
  int to_;
  State state_ = State::kOpen;
  std::deque<Piece> pieces_;
  std::size_t held_ = 0;  // bytes in them
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
    const bool went_there = there_.turn(mode);
    return back_.turn(mode) || went_there;
  }

  bool is_over() const { return there_.is_broken() || back_.is_broken() || (there_.is_over() && back_.is_over()); }

 private:
  int caller_;
  int called_;
  Way there_;
  Way back_;
};

// A small word is not to wait for the answer to the one before.
void send_at_once(int socket) {
  const int yes = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

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

void TcpProxy::set(Mode mode) {
  mode_ = mode;
  for (Mode now = in_force_; now != mode; now = in_force_) in_force_.wait(now);
}

void TcpProxy::run() {
  std::list<Connection> connections;
  const sockaddr_in worker = address_of("127.0.0.1", port_);
  while (!is_over_) {
    for (int caller = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); caller >= 0;
         caller = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)) {
      const int called = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      send_at_once(caller);
      send_at_once(called);
      const bool is_there = ::connect(called, generic(worker), sizeof worker) == 0;
      connections.emplace_back(caller, called);
      if (!is_there) connections.pop_back();
    }
    const Mode mode = mode_;
    if (in_force_.exchange(mode) != mode) in_force_.notify_all();
    bool has_moved = false;
    for (Connection& one : connections) has_moved = one.turn(mode) || has_moved;
    connections.remove_if([](const Connection& one) { return one.is_over(); });
    if (!has_moved) std::this_thread::sleep_for(kLookAtPipes);
  }
}

}  // namespace everstep::launcher::chaos
