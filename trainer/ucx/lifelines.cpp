#include "trainer/ucx/lifelines.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "trainer/wire.h"

namespace everstep::trainer {
namespace {

constexpr std::byte kGoodbye{'g'};
constexpr std::byte kDeath{'d'};

}  // namespace

Lifelines::Lifelines(std::vector<FileDescriptor> sockets) : events_(::epoll_create1(EPOLL_CLOEXEC)) {
  EVERSTEP_CHECK(events_.is_open(), "epoll_create1 failed");
  for (FileDescriptor& socket : sockets) {
    const auto worker = static_cast<std::uint32_t>(peers_.size());
    if (socket.is_open()) {
      epoll_event event{.events = EPOLLIN, .data = {.u32 = worker}};
      EVERSTEP_CHECK(::epoll_ctl(events_.get(), EPOLL_CTL_ADD, socket.get(), &event) == 0, "epoll_ctl failed");
    }
    peers_.push_back({std::move(socket)});
  }
}

Status Lifelines::poll() {
  std::array<epoll_event, 16> events{};
  int count = 0;
  while ((count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0)) > 0) {
    for (int i = 0; i < count; ++i) EVERSTEP_TRY(read(static_cast<int>(events[i].data.u32)));
  }
  return {};
}

Status Lifelines::read(int worker) {
  Peer& peer = peers_[worker];
  const std::span<std::byte> rest = std::span(peer.inbox).subspan(peer.received);
  const ssize_t count = ::recv(peer.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (count > 0) {
    peer.received += static_cast<std::size_t>(count);
    return peer.received == peer.inbox.size() ? heard(worker) : Status();
  }
  peer.socket.reset();
  return peer.said_goodbye ? Status() : spread_death(worker);
}

Status Lifelines::heard(int worker) {
  Peer& peer = peers_[worker];
  peer.received = 0;
  WireReader reader(peer.inbox);
  const auto kind = static_cast<std::byte>(reader.get<std::uint8_t>());
  const int about = reader.get<std::uint16_t>();
  if (kind == kDeath && about < static_cast<int>(peers_.size())) return spread_death(about);
  if (kind != kGoodbye || peer.said_goodbye) {
    return Error{ErrorCode::kInternal, "worker " + std::to_string(worker) + " sent garbage on its lifeline", {}};
  }
  peer.said_goodbye = true;
  return {};
}

Error Lifelines::spread_death(int worker) {
  tell_all(kDeath, worker);
  return {ErrorCode::kUnavailable, "worker " + std::to_string(worker) + " died", "its log says why"};
}

void Lifelines::say_goodbye() { tell_all(kGoodbye, 0); }

void Lifelines::tell_all(std::byte kind, int about) {
  WireWriter message;
  message.put(static_cast<std::uint8_t>(kind));
  message.put(static_cast<std::uint16_t>(about));
  for (const Peer& peer : peers_) {
    // A peer that cannot be told is dead or has left: poll() says which.
    if (peer.socket.is_open()) {
      ::send(peer.socket.get(), message.bytes().data(), message.bytes().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
  }
}

bool Lifelines::all_said_goodbye() const { return first_still_here() < 0; }

int Lifelines::first_still_here() const {
  const auto here = std::find_if(peers_.begin(), peers_.end(),
                                 [](const Peer& peer) { return peer.socket.is_open() && !peer.said_goodbye; });
  return here == peers_.end() ? -1 : static_cast<int>(here - peers_.begin());
}

}  // namespace everstep::trainer
