#include "tests/trainer/socket/relay.h"

#include <algorithm>
#include <array>
#include <utility>

#include <poll.h>
#include <sys/socket.h>

#include "trainer/socket/plain_stream.h"

namespace everstep::trainer {

Relay::Relay(FileDescriptor entrance, std::function<FileDescriptor()> dial, Meddler meddler)
    : entrance_(std::move(entrance)), dial_(std::move(dial)), meddler_(std::move(meddler)) {
  thread_ = std::thread([this] { run(); });
}

Relay::~Relay() {
  stop_.raise();
  thread_.join();
}

void Relay::run() {
  while (true) {
    std::vector<pollfd> polled{{stop_.descriptor(), POLLIN, 0}, {entrance_.get(), POLLIN, 0}};
    for (const Line& line : lines_) {
      for (const Direction from : {kToCalled, kToCaller}) {
        const Way& away = line.ways[from];
        const Way& towards = line.ways[1 - from];
        const int events =
            (away.has_ended || !away.waiting.empty() ? 0 : POLLIN) | (towards.waiting.empty() ? 0 : POLLOUT);
        polled.push_back({events == 0 ? -1 : line.ends[from].get(), static_cast<short>(events), 0});
      }
    }
    ::poll(polled.data(), polled.size(), -1);
    if (polled[0].revents != 0) return;
    for (std::size_t i = lines_.size(); i-- > 0;) {
      if (!serve(lines_[i], polled[2 + 2 * i].revents, polled[3 + 2 * i].revents)) lines_.erase(lines_.begin() + i);
    }
    if (polled[1].revents == 0) continue;
    FileDescriptor caller(::accept4(entrance_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (caller.is_open()) lines_.push_back({calls_++, {std::move(caller), dial_()}});
  }
}

// Whether it goes on.
bool Relay::serve(Line& line, short caller_events, short called_events) {
  const std::array<short, 2> events{caller_events, called_events};
  for (const Direction from : {kToCalled, kToCaller}) {
    if (events[from] == 0) continue;
    if (!line.ways[1 - from].waiting.empty() && !hand_on(line, static_cast<Direction>(1 - from))) return false;
    if (line.ways[from].waiting.empty() && !line.ways[from].has_ended && !take(line, from)) return false;
  }
  return !line.ways[kToCalled].has_ended || !line.ways[kToCaller].has_ended;
}

bool Relay::take(Line& line, Direction direction) {
  Way& way = line.ways[direction];
  std::string bytes(65536, '\0');
  const iovec into{bytes.data(), bytes.size()};
  const StreamResult came = read_socket(line.ends[direction].get(), {&into, 1});
  if (came.kind == StreamResult::Kind::kBlocked) return true;
  if (came.kind == StreamResult::Kind::kBroken) return false;
  if (came.kind == StreamResult::Kind::kEnded) {
    way.has_ended = true;
    ::shutdown(line.ends[1 - direction].get(), SHUT_WR);
    return true;
  }
  bytes.resize(came.bytes);
  const std::size_t before = std::exchange(way.passed, way.passed + came.bytes);
  if (meddler_) meddler_({line.call, direction, before, bytes});
  way.waiting = std::move(bytes);
  return way.waiting.empty() || hand_on(line, direction);
}

bool Relay::hand_on(Line& line, Direction direction) {
  std::string& waiting = line.ways[direction].waiting;
  const iovec from{waiting.data(), waiting.size()};
  const StreamResult sent = write_socket(line.ends[1 - direction].get(), {&from, 1});
  waiting.erase(0, sent.bytes);
  return sent.kind != StreamResult::Kind::kBroken;
}

}  // namespace everstep::trainer
