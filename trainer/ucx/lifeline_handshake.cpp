#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/log_line.h"
#include "trainer/ucx/lifelines.h"
#include "trainer/wire.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMagic = 0x454E494C4546494C;  // "LIFELINE"
constexpr std::size_t kHelloBytes = 32;

// What each side of a new connection says first.
struct Hello {
  LifelineIdentity from;
  int to = 0;
};

std::string encode(const Hello& hello) {
  WireWriter writer;
  writer.put(kMagic);
  writer.put(hello.from.lineage);
  writer.put(hello.from.generation.value);
  writer.put(static_cast<std::int32_t>(hello.from.worker));
  writer.put(static_cast<std::int32_t>(hello.to));
  EVERSTEP_CHECK(writer.bytes().size() == kHelloBytes, "a hello has another length than its readers expect");
  return std::move(writer).take();
}

std::optional<Hello> decode(std::span<const std::byte> bytes) {
  WireReader reader(bytes);
  if (reader.get<std::uint64_t>() != kMagic) return std::nullopt;
  Hello hello;
  reader.get(hello.from.lineage);
  reader.get(hello.from.generation.value);
  hello.from.worker = reader.get<std::int32_t>();
  hello.to = reader.get<std::int32_t>();
  return hello;
}

std::string to_text(const LifelineAddress& address) { return address.host + ":" + std::to_string(address.port); }

std::string reason(int error) { return std::strerror(error); }  // NOLINT(concurrency-mt-unsafe)

std::optional<sockaddr_in> to_socket_address(const LifelineAddress& address) {
  sockaddr_in socket_address{};
  socket_address.sin_family = AF_INET;
  socket_address.sin_port = htons(address.port);
  if (::inet_pton(AF_INET, address.host.c_str(), &socket_address.sin_addr) != 1) return std::nullopt;
  return socket_address;
}

FileDescriptor new_socket() { return FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

void set_option(const FileDescriptor& socket, int level, int name, int value) {
  EVERSTEP_CHECK(::setsockopt(socket.get(), level, name, &value, sizeof value) == 0, "setsockopt failed");
}

// A process that dies closes its sockets; a host that dies does not. Probes notice that within some seconds.
void probe_when_idle(const FileDescriptor& socket) {
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, 2);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

Error unavailable(int worker, const std::string& what) {
  return {ErrorCode::kUnavailable, "worker " + std::to_string(worker) + " " + what, "its log says why"};
}

// Makes the connections to all peers, all at once, each a small state machine driven by poll().
class Handshake {
 public:
  Handshake(const FileDescriptor& listener, const LifelineIdentity& me, const std::vector<LifelineAddress>& addresses,
            const LogHook& log)
      : listener_(listener), me_(me), addresses_(addresses), log_(log), established_(addresses.size()) {}

  Result<std::vector<FileDescriptor>> run(std::chrono::milliseconds timeout) {
    const Clock::time_point deadline = Clock::now() + timeout;
    for (int worker = 0; worker < me_.worker; ++worker) EVERSTEP_TRY(dial(worker));
    while (const std::optional<int> missing = first_missing()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left <= 0) {
        return Error{
            ErrorCode::kDeadlineExceeded,
            "worker " + std::to_string(*missing) + " did not connect within " + std::to_string(timeout.count()) + " ms",
            "is it running?"};
      }
      EVERSTEP_TRY(step(static_cast<int>(left)));
    }
    return std::move(established_);
  }

 private:
  struct Connection {
    FileDescriptor socket;
    int dialled = -1;      // the worker that was called; -1: a caller who has yet to say who it is
    bool greeted = false;  // our hello is sent
    std::array<std::byte, kHelloBytes> inbox{};
    std::size_t received = 0;
  };

  std::optional<int> first_missing() const {
    for (int worker = 0; worker < static_cast<int>(established_.size()); ++worker) {
      if (worker != me_.worker && !established_[worker].is_open()) return worker;
    }
    return std::nullopt;
  }

  Status dial(int worker) {
    const std::optional<sockaddr_in> address = to_socket_address(addresses_[worker]);
    if (!address) return invalid_argument("'" + addresses_[worker].host + "' is not an IPv4 address");
    Connection connection{new_socket(), worker};
    const int outcome =
        ::connect(connection.socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address);
    if (outcome != 0 && errno != EINPROGRESS) return cannot_reach(worker, errno);
    open_.push_back(std::move(connection));
    return {};
  }

  Error cannot_reach(int worker, int error) const {
    return unavailable(worker, "cannot be reached at " + to_text(addresses_[worker]) + ": " + reason(error));
  }

  Status step(int timeout_ms) {
    std::vector<pollfd> polled{{listener_.get(), POLLIN, 0}};
    for (const Connection& connection : open_) {
      const bool dialling = connection.dialled >= 0 && !connection.greeted;
      polled.push_back({connection.socket.get(), static_cast<short>(dialling ? POLLOUT : POLLIN), 0});
    }
    for (const FileDescriptor& socket : established_) polled.push_back({socket.get(), POLLRDHUP, 0});
    if (::poll(polled.data(), polled.size(), timeout_ms) <= 0) return {};

    const std::size_t open_count = open_.size();
    for (std::size_t worker = 0; worker < established_.size(); ++worker) {
      // No peer hangs up on purpose before it has heard this worker's goodbye.
      if (polled[1 + open_count + worker].revents != 0) return unavailable(static_cast<int>(worker), "died");
    }
    for (std::size_t i = 0; i < open_count; ++i) {
      if (polled[1 + i].revents != 0) EVERSTEP_TRY(advance(open_[i]));
    }
    if (polled[0].revents != 0) accept_all();
    std::erase_if(open_, [](const Connection& connection) { return !connection.socket.is_open(); });
    return {};
  }

  void accept_all() {
    while (true) {
      FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) return;
      open_.push_back({std::move(socket)});
    }
  }

  Status advance(Connection& connection) {
    if (connection.dialled >= 0 && !connection.greeted) return greet_dialled(connection);
    const std::span<std::byte> rest = std::span(connection.inbox).subspan(connection.received);
    const ssize_t count = ::recv(connection.socket.get(), rest.data(), rest.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (count <= 0) return ended(connection);
    connection.received += static_cast<std::size_t>(count);
    if (connection.received < kHelloBytes) return {};
    return connection.dialled >= 0 ? answered(connection) : introduced(connection);
  }

  Status greet_dialled(Connection& connection) {
    int error = 0;
    socklen_t size = sizeof error;
    ::getsockopt(connection.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) return cannot_reach(connection.dialled, error);
    greet(connection, connection.dialled);
    return {};
  }

  // A fresh connection takes 32 bytes at once; if it is broken, the next read says so.
  void greet(Connection& connection, int to) {
    const std::string hello = encode({me_, to});
    ::send(connection.socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL);
    connection.greeted = true;
  }

  Status ended(Connection& connection) {
    if (connection.dialled >= 0) return unavailable(connection.dialled, "hung up before it said who it is");
    turn_away(connection, "it hung up before it said who it is");
    return {};
  }

  // The worker we called says who it is.
  Status answered(Connection& connection) {
    const int worker = connection.dialled;
    const std::optional<Hello> hello = decode(connection.inbox);
    if (!hello) return unavailable(worker, "is not what answers at " + to_text(addresses_[worker]));
    if (const std::string difference = difference_to(*hello); !difference.empty() || hello->from.worker != worker) {
      return Error{ErrorCode::kStaleGeneration,
                   to_text(addresses_[worker]) + " is not worker " + std::to_string(worker) +
                       " of this run: " + (difference.empty() ? "it is another worker" : difference),
                   "does another run use this address?"};
    }
    establish(connection, worker);
    return {};
  }

  // A caller says who it is. It gets an answer even if it is turned away, so that it can tell its user why.
  Status introduced(Connection& connection) {
    const std::optional<Hello> hello = decode(connection.inbox);
    if (!hello) {
      turn_away(connection, "it does not speak this protocol");
      return {};
    }
    greet(connection, hello->from.worker);
    const int worker = hello->from.worker;
    if (const std::string difference = difference_to(*hello); !difference.empty()) {
      turn_away(connection, difference);
    } else if (worker <= me_.worker || worker >= static_cast<int>(established_.size())) {
      turn_away(connection, "no worker " + std::to_string(worker) + " calls here");
    } else if (established_[worker].is_open()) {
      turn_away(connection, "worker " + std::to_string(worker) + " is connected already");
    } else {
      establish(connection, worker);
    }
    return {};
  }

  std::string difference_to(const Hello& hello) const {
    if (hello.from.lineage != me_.lineage) return "it belongs to another lineage";
    if (hello.from.generation != me_.generation) {
      return "it is in generation " + std::to_string(hello.from.generation.value) + ", not " +
             std::to_string(me_.generation.value);
    }
    return hello.to == me_.worker ? "" : "it looks for worker " + std::to_string(hello.to);
  }

  void establish(Connection& connection, int worker) {
    probe_when_idle(connection.socket);
    established_[worker] = std::move(connection.socket);
  }

  void turn_away(Connection& connection, const std::string& why) {
    if (log_) log_(LogLine("connection_refused").add("worker", me_.worker).add("reason", why).text());
    connection.socket.reset();
  }

  const FileDescriptor& listener_;
  const LifelineIdentity& me_;
  const std::vector<LifelineAddress>& addresses_;
  const LogHook& log_;
  std::vector<Connection> open_;
  std::vector<FileDescriptor> established_;
};

}  // namespace

LifelineListener::LifelineListener(FileDescriptor socket, LifelineAddress address, LifelineIdentity identity,
                                   LogHook log)
    : socket_(std::move(socket)), address_(std::move(address)), identity_(identity), log_(std::move(log)) {}

Result<LifelineListener> LifelineListener::listen(const LifelineAddress& address, const LifelineIdentity& identity,
                                                  LogHook log) {
  std::optional<sockaddr_in> bound = to_socket_address(address);
  if (!bound) return invalid_argument("'" + address.host + "' is not an IPv4 address", "give it in digits: 127.0.0.1");
  FileDescriptor socket = new_socket();
  if (!socket.is_open()) return Error{ErrorCode::kUnavailable, "cannot make a socket: " + reason(errno), {}};
  set_option(socket, SOL_SOCKET, SO_REUSEADDR, 1);
  auto* const raw = reinterpret_cast<sockaddr*>(&*bound);
  if (::bind(socket.get(), raw, sizeof *bound) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    if (errno == EADDRINUSE) {
      return invalid_argument("port " + std::to_string(address.port) + " of " + address.host + " is in use",
                              "choose another one, or 0 for any");
    }
    return invalid_argument("cannot listen at " + to_text(address) + ": " + reason(errno),
                            "is this an address of this machine?");
  }
  socklen_t size = sizeof *bound;
  EVERSTEP_CHECK(::getsockname(socket.get(), raw, &size) == 0, "getsockname failed");
  return LifelineListener(std::move(socket), {address.host, ntohs(bound->sin_port)}, identity, std::move(log));
}

Result<Lifelines> LifelineListener::connect(const std::vector<LifelineAddress>& addresses,
                                            std::chrono::milliseconds timeout) && {
  auto sockets = Handshake(socket_, identity_, addresses, log_).run(timeout);
  socket_.reset();
  if (!sockets) return sockets.error();
  return Lifelines(std::move(sockets).value());
}

}  // namespace everstep::trainer
