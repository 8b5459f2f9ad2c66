#include "trainer/socket/lifelines.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "trainer/wire/byte_codec.h"

namespace everstep::trainer {
namespace {

constexpr std::uint32_t kBeatIsDue = std::numeric_limits<std::uint32_t>::max();  // no worker's number

}  // namespace

WordBytes encode_word(const LifelineWord& word) {
  WireWriter writer;
  writer.put(static_cast<std::uint8_t>(word.kind));
  writer.put(static_cast<std::uint16_t>(word.about));
  WordBytes bytes{};
  std::copy(writer.bytes().begin(), writer.bytes().end(), bytes.begin());
  return bytes;
}

std::optional<LifelineWord> decode_word(const WordBytes& bytes, int workers) {
  WireReader reader(bytes);
  const LifelineWord word{static_cast<LifelineWord::Kind>(reader.get<std::uint8_t>()), reader.get<std::uint16_t>()};
  switch (word.kind) {
    case LifelineWord::Kind::kGoodbye:
    case LifelineWord::Kind::kGaveUp:
    case LifelineWord::Kind::kBreak:
    case LifelineWord::Kind::kDeath:
    case LifelineWord::Kind::kRenewed:
    case LifelineWord::Kind::kBeat:
      if (word.about < workers) return word;
  }
  return std::nullopt;
}

void send_word(ByteStream& lifeline, const LifelineWord& word) {
  const WordBytes bytes = encode_word(word);
  write_text(lifeline, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

StreamResult WordInbox::read(ByteStream& lifeline) {
  while (received < bytes.size()) {
    const iovec rest{bytes.data() + received, bytes.size() - received};
    StreamResult came = lifeline.read({&rest, 1});
    if (!came.moved()) return came;
    received += came.bytes;
  }
  received = 0;
  return {StreamResult::Kind::kMoved};
}

void PeerWords::hear(LifelineWord::Kind kind) {
  gave_up = gave_up || kind == LifelineWord::Kind::kGaveUp;
  said_goodbye = said_goodbye || gave_up || kind == LifelineWord::Kind::kGoodbye;
  takes_part = takes_part && !said_goodbye && kind != LifelineWord::Kind::kBreak;
}

std::optional<int> hear_last_words(ByteStream& lifeline, PeerWords& words, int workers) {
  WordInbox inbox;
  std::optional<int> dead;
  while (inbox.read(lifeline).moved()) {
    const std::optional<LifelineWord> word = decode_word(inbox.bytes, workers);
    if (!word) break;  // noise says nothing
    words.hear(word->kind);
    if (word->kind == LifelineWord::Kind::kDeath && !dead) dead = word->about;
  }
  return dead;
}

Lifelines::Lifelines(std::vector<LifelineToPeer> lifelines, std::shared_ptr<ClosingStreams> closing)
    : closing_(std::move(closing)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      beats_(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) {
  EVERSTEP_CHECK(events_.is_open() && beats_.is_open(), "epoll_create1 or timerfd_create failed");
  const itimerspec twice_a_second{{0, 500'000'000}, {0, 500'000'000}};
  EVERSTEP_CHECK(::timerfd_settime(beats_.get(), 0, &twice_a_second, nullptr) == 0, "timerfd_settime failed");
  watch(beats_.get(), kBeatIsDue);
  for (LifelineToPeer& lifeline : lifelines) {
    if (lifeline.stream) watch(lifeline.stream->descriptor(), static_cast<std::uint32_t>(peers_.size()));
    peers_.push_back({std::move(lifeline.stream), lifeline.heard});
  }
  // A word may have come with the end of the handshake.
  for (std::size_t worker = 0; worker < peers_.size(); ++worker) {
    if (peers_[worker].stream) read(static_cast<int>(worker));
  }
}

// So that a last word arrives.
Lifelines::~Lifelines() {
  for (Peer& peer : peers_) {
    if (peer.stream) closing_->take(std::move(peer.stream));
  }
}

void Lifelines::watch(int descriptor, std::uint32_t name) const {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = name}};
  EVERSTEP_CHECK(::epoll_ctl(events_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0, "epoll_ctl failed");
}

Status Lifelines::poll() {
  const std::lock_guard lock(mutex_);
  std::array<epoll_event, 16> events{};
  int count = 0;
  while ((count = ::epoll_wait(events_.get(), events.data(), static_cast<int>(events.size()), 0)) > 0) {
    for (int i = 0; i < count; ++i) {
      const std::uint32_t name = events[i].data.u32;
      name == kBeatIsDue ? beat() : read(static_cast<int>(name));
    }
  }
  return error_ ? Status(*error_) : Status();
}

std::optional<LostPeer> Lifelines::lost() const {
  const std::lock_guard lock(mutex_);
  return lost_;
}

bool Lifelines::any_dead(const std::vector<int>& workers) const {
  const std::lock_guard lock(mutex_);
  return std::any_of(workers.begin(), workers.end(), [this](int worker) { return dead_.contains(worker); });
}

// Within a host nothing has to be found out. There beats would only fill the queue of a peer that is stopped, and leave
// no room for a goodbye.
void Lifelines::beat() {
  std::uint64_t missed = 0;
  if (::read(beats_.get(), &missed, sizeof missed) <= 0) return;
  for (const Peer& peer : peers_) {
    if (peer.stream && peer.stream->encrypts()) send_word(*peer.stream, {LifelineWord::Kind::kBeat, 0});
  }
}

// Until nothing is left: what a stream has read ahead is shown by no event.
void Lifelines::read(int worker) {
  Peer& peer = peers_[worker];
  while (peer.stream) {
    const StreamResult came = peer.inbox.read(*peer.stream);
    if (came.kind == StreamResult::Kind::kBlocked) return;
    if (came.moved()) {
      heard(worker);
      continue;
    }
    peer.stream.reset();
    if (!peer.words.said_goodbye) died(worker);
  }
}

void Lifelines::heard(int worker) {
  Peer& peer = peers_[worker];
  const std::optional<LifelineWord> word = decode_word(peer.inbox.bytes, static_cast<int>(peers_.size()));
  if (!word) {
    peer.stream.reset();
    if (!error_) {
      error_ = Error{ErrorCode::kInternal, "worker " + std::to_string(worker) + " sent garbage on its lifeline", {}};
    }
    return;
  }
  peer.words.hear(word->kind);
  if (word->kind == LifelineWord::Kind::kRenewed) peer_renewed_at_ = std::chrono::steady_clock::now();
  if (word->kind == LifelineWord::Kind::kDeath) died(word->about);
}

// The first error stays.
void Lifelines::died(int worker) {
  dead_.insert(worker);
  if (error_) return;
  tell_all({LifelineWord::Kind::kDeath, worker});
  error_ = Error{ErrorCode::kUnavailable, "worker " + std::to_string(worker) + " died", "its log says why"};
  lost_ = LostPeer{worker, LostPeer::How::kClosed};
}

void Lifelines::break_off() {
  const std::lock_guard lock(mutex_);
  tell_all({LifelineWord::Kind::kBreak, 0});
}

void Lifelines::say_goodbye() {
  const std::lock_guard lock(mutex_);
  tell_all({LifelineWord::Kind::kGoodbye, 0});
}

void Lifelines::give_up() {
  const std::lock_guard lock(mutex_);
  tell_all({LifelineWord::Kind::kGaveUp, 0});
}

void Lifelines::tell_renewed() {
  const std::lock_guard lock(mutex_);
  tell_all({LifelineWord::Kind::kRenewed, 0});
}

std::optional<std::chrono::steady_clock::time_point> Lifelines::peer_renewed_at() const {
  const std::lock_guard lock(mutex_);
  return peer_renewed_at_;
}

std::vector<int> Lifelines::dead() const {
  const std::lock_guard lock(mutex_);
  return {dead_.begin(), dead_.end()};
}

std::vector<int> Lifelines::look_for_dead() {
  (void)poll();
  return dead();
}

void Lifelines::tell_all(const LifelineWord& word) {
  for (const Peer& peer : peers_) {
    if (peer.stream) send_word(*peer.stream, word);
  }
}

void Lifelines::hang_up() {
  const std::lock_guard lock(mutex_);
  for (Peer& peer : peers_) peer.stream.reset();
}

bool Lifelines::has_left(int worker) const {
  const std::lock_guard lock(mutex_);
  return !peers_[worker].words.takes_part;
}

std::optional<int> Lifelines::first_that_gave_up() const {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(peers_, [](const Peer& peer) { return peer.words.gave_up; });
  return found == peers_.end() ? std::nullopt : std::optional(static_cast<int>(found - peers_.begin()));
}

int Lifelines::first_still_here() const {
  const std::lock_guard lock(mutex_);
  const auto here = std::ranges::find_if(peers_, [](const Peer& peer) { return peer.stream && peer.words.takes_part; });
  return here == peers_.end() ? -1 : static_cast<int>(here - peers_.begin());
}

}  // namespace everstep::trainer
