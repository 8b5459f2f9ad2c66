#include "trainer/ucx/lifeline/lifeline_port.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/check.h"
#include "base/log_line.h"

namespace everstep::trainer {
namespace {

constexpr std::size_t kMostStrangers = 256;
constexpr int kTickMs = 100;  // how exact the patience with callers is, while there are any

FileDescriptor new_event() { return FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void wake(const FileDescriptor& event) { ::eventfd_write(event.get(), 1); }

void rest(const FileDescriptor& event) {
  eventfd_t ignored = 0;
  ::eventfd_read(event.get(), &ignored);
}

}  // namespace

void turn_away(FileDescriptor socket, Refusal refusal) {
  Reply reply;
  reply.kind = Reply::Kind::kRefusal;
  reply.refusal = refusal;
  const std::string bytes = encode_reply(reply);
  ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

CallInbox::CallInbox(const LifelineAttempt& attempt) : attempt_(attempt), wake_(new_event()) {
  EVERSTEP_CHECK(wake_.is_open(), "eventfd failed");
}

CallInbox::~CallInbox() {
  for (IncomingCall& call : calls_) turn_away(std::move(call.socket), Refusal::kOver);
}

std::vector<IncomingCall> CallInbox::take() {
  const std::lock_guard lock(mutex_);
  rest(wake_);
  return std::exchange(calls_, {});
}

bool CallInbox::is_given_up() {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

void CallInbox::put(IncomingCall call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
  wake(wake_);
}

void CallInbox::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  wake(wake_);
}

LifelinePort::LifelinePort(FileDescriptor listening, LogHook log)
    : listening_(std::move(listening)), wake_(new_event()), log_(std::move(log)) {
  EVERSTEP_CHECK(wake_.is_open(), "eventfd failed");
  thread_ = std::thread([this] { serve(); });
}

LifelinePort::~LifelinePort() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake(wake_);
  thread_.join();
}

Result<std::shared_ptr<CallInbox>> LifelinePort::open(const LifelineAttempt& attempt) {
  const std::lock_guard lock(mutex_);
  const Try key{attempt.generation, attempt.nonce};
  if (given_up_.contains(key)) return Error{ErrorCode::kCancelled, "the try to connect was given up", {}};
  if (const std::optional<Refusal> objection = objection_to(attempt)) {
    return Error{ErrorCode::kStaleGeneration,
                 "cannot connect for generation " + std::to_string(attempt.generation.value) + ": " +
                     std::string(to_string(*objection)),
                 {}};
  }
  lineage_ = attempt.lineage;
  newest_ = std::max(newest_, attempt.generation);
  const auto older = [this](const Try& ended) { return ended.first < newest_; };
  std::erase_if(over_, older);
  std::erase_if(given_up_, older);
  open_.push_back(std::make_shared<CallInbox>(attempt));
  const std::shared_ptr<CallInbox> inbox = open_.back();
  judge_parked_again();
  return inbox;
}

void LifelinePort::close(const CallInbox& inbox) {
  const std::lock_guard lock(mutex_);
  over_.insert({inbox.attempt_.generation, inbox.attempt_.nonce});
  std::erase_if(open_, [&](const auto& one) { return one.get() == &inbox; });
}

void LifelinePort::give_up(Generation generation, std::uint32_t nonce) {
  const std::lock_guard lock(mutex_);
  const Try key{generation, nonce};
  given_up_.insert(key);
  for (const auto& inbox : open_) {
    if (Try{inbox->attempt_.generation, inbox->attempt_.nonce} == key) inbox->give_up();
  }
  judge_parked_again();
}

std::int64_t LifelinePort::fenced() const {
  const std::lock_guard lock(mutex_);
  return fenced_;
}

void LifelinePort::judge_parked_again() {
  for (Parked& parked : std::exchange(parked_, {})) place(std::move(parked.call), parked.until);
}

void LifelinePort::serve() {
  while (true) {
    wait_for_calls();
    std::deque<Parked> late;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      while (!parked_.empty() && (parked_.front().until <= Clock::now() || parked_.size() > kParkedCalls)) {
        late.push_back(std::move(parked_.front()));
        parked_.pop_front();
      }
    }
    for (Parked& parked : late) refuse(std::move(parked.call), Refusal::kTooEarly);
  }
}

void LifelinePort::wait_for_calls() {
  std::vector<pollfd> polled{{wake_.get(), POLLIN, 0}, {accepting_ ? listening_.get() : -1, POLLIN, 0}};
  for (const Stranger& stranger : strangers_) polled.push_back({stranger.socket.get(), POLLIN, 0});
  bool has_parked = false;
  {
    const std::lock_guard lock(mutex_);
    has_parked = !parked_.empty();
  }
  const bool idle = accepting_ && strangers_.empty() && !has_parked;
  ::poll(polled.data(), polled.size(), idle ? -1 : kTickMs);
  rest(wake_);
  accepting_ = true;
  for (std::size_t i = 0; i < strangers_.size(); ++i) {
    if (polled[2 + i].revents != 0) {
      listen_to(strangers_[i]);
    } else if (strangers_[i].until <= Clock::now()) {
      let_go(strangers_[i], "it did not say who it is");
    }
  }
  std::erase_if(strangers_, [](const Stranger& stranger) { return !stranger.socket.is_open(); });
  if (polled[1].revents != 0) accept_all();
}

void LifelinePort::accept_all() {
  while (true) {
    FileDescriptor socket(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      accepting_ = errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
      return;
    }
    if (strangers_.size() == kMostStrangers) {
      let_go(strangers_.front(), "too many callers have not said who they are");
      strangers_.erase(strangers_.begin());
    }
    strangers_.push_back({std::move(socket), Clock::now() + kPatience});
  }
}

void LifelinePort::listen_to(Stranger& stranger) {
  const std::span<std::byte> rest = std::span(stranger.inbox).subspan(stranger.received);
  const ssize_t count = ::recv(stranger.socket.get(), rest.data(), rest.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count == 0 && stranger.received == 0) return stranger.socket.reset();  // it only wanted to know who lives
  if (count <= 0) return let_go(stranger, "it hung up before it said who it is");
  stranger.received += static_cast<std::size_t>(count);
  if (stranger.received < kHelloBytes) return;
  const std::optional<CallerHello> hello = decode_hello(stranger.inbox);
  if (!hello) return let_go(stranger, "it does not speak this protocol");
  introduce({std::exchange(stranger.socket, {}), *hello});
}

void LifelinePort::let_go(Stranger& stranger, const std::string& why) {
  if (log_) log_(LogLine("connection_refused").add("reason", why).text());
  stranger.socket.reset();
}

void LifelinePort::introduce(IncomingCall call) {
  const std::lock_guard lock(mutex_);
  place(std::move(call), Clock::now() + kParkedTime);
}

void LifelinePort::place(IncomingCall call, Clock::time_point until) {
  if (const std::optional<Refusal> objection = objection_to(call.hello.attempt)) {
    if (*objection == Refusal::kOver) ++fenced_;
    return refuse(std::move(call), *objection);
  }
  const auto inbox =
      std::find_if(open_.begin(), open_.end(), [&](const auto& one) { return one->attempt_ == call.hello.attempt; });
  if (inbox != open_.end()) return (*inbox)->put(std::move(call));
  parked_.push_back({std::move(call), until});
}

std::optional<Refusal> LifelinePort::objection_to(const LifelineAttempt& attempt) const {
  if (lineage_ && attempt.lineage != *lineage_) return Refusal::kOtherRun;
  const Try key{attempt.generation, attempt.nonce};
  const bool open = std::any_of(open_.begin(), open_.end(), [&](const auto& one) { return one->attempt_ == attempt; });
  if (given_up_.contains(key) || over_.contains(key) || (attempt.generation < newest_ && !open)) return Refusal::kOver;
  return std::nullopt;
}

void LifelinePort::refuse(IncomingCall call, Refusal refusal) {
  turn_away(std::move(call.socket), refusal);
  if (!log_) return;
  log_(LogLine("connection_refused")
           .add("caller", call.hello.caller.worker)
           .add("generation", call.hello.attempt.generation.value)
           .add("reason", to_string(refusal))
           .text());
}

}  // namespace everstep::trainer
