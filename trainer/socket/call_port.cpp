#include "trainer/socket/call_port.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <span>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/log_line.h"
#include "trainer/socket/sockets.h"

namespace everstep::trainer {
namespace {

constexpr int kTickMs = 100;  // how exact the patience with callers is, while there are any

// Its IP address; over AF_UNIX the same for all callers.
std::string host_of_caller(const ByteStream& stream) {
  SocketAddress caller;
  std::array<char, NI_MAXHOST> digits{};
  ::getpeername(stream.descriptor(), caller.get(), &caller.size);
  ::getnameinfo(caller.get(), caller.size, digits.data(), digits.size(), nullptr, 0, NI_NUMERICHOST);
  return digits.data();
}

}  // namespace

void turn_away(std::unique_ptr<ByteStream> stream, Refusal refusal) {
  Reply reply;
  reply.kind = Reply::Kind::kRefusal;
  reply.refusal = refusal;
  write_text(*stream, encode_reply(reply));
  stream->end_writing();
}

CallInbox::CallInbox(const PeerAttempt& attempt) : attempt_(attempt) {}

CallInbox::~CallInbox() {
  for (IncomingCall& call : calls_) turn_away(std::move(call.stream), Refusal::kOver);
}

std::vector<IncomingCall> CallInbox::take() {
  const std::lock_guard lock(mutex_);
  wake_.lower();
  return std::exchange(calls_, {});
}

bool CallInbox::is_given_up() {
  const std::lock_guard lock(mutex_);
  return given_up_;
}

void CallInbox::put(IncomingCall call) {
  const std::lock_guard lock(mutex_);
  calls_.push_back(std::move(call));
  wake_.raise();
}

void CallInbox::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  wake_.raise();
}

CallPort::CallPort(std::vector<Entrance> entrances, LogHook log)
    : entrances_(std::move(entrances)), log_(std::move(log)) {
  thread_ = std::thread([this] { serve(); });
}

CallPort::~CallPort() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.raise();
  thread_.join();
}

Result<std::shared_ptr<CallInbox>> CallPort::open(const PeerAttempt& attempt) {
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

void CallPort::close(const CallInbox& inbox) {
  const std::lock_guard lock(mutex_);
  over_.insert({inbox.attempt_.generation, inbox.attempt_.nonce});
  std::erase_if(open_, [&](const auto& one) { return one.get() == &inbox; });
}

void CallPort::give_up(Generation generation, std::uint32_t nonce) {
  const std::lock_guard lock(mutex_);
  const Try key{generation, nonce};
  given_up_.insert(key);
  for (const auto& inbox : open_) {
    if (Try{inbox->attempt_.generation, inbox->attempt_.nonce} == key) inbox->give_up();
  }
  judge_parked_again();
}

std::int64_t CallPort::fenced() const {
  const std::lock_guard lock(mutex_);
  return fenced_;
}

void CallPort::judge_parked_again() {
  for (Parked& parked : std::exchange(parked_, {})) place(std::move(parked));
}

void CallPort::serve() {
  while (true) {
    wait_for_calls();
    std::vector<Parked> unparked;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      unparked = unpark_some();
    }
    for (Parked& parked : unparked) refuse(std::move(parked.call), Refusal::kTooEarly);
  }
}

// Those that have waited for too long, and those that are too many.
std::vector<CallPort::Parked> CallPort::unpark_some() {
  std::vector<Parked> unparked;
  const auto unpark = [&](const std::deque<Parked>::iterator& leaves) {
    unparked.push_back(std::move(*leaves));
    parked_.erase(leaves);
  };
  while (!parked_.empty() && parked_.front().until <= Clock::now()) unpark(parked_.begin());
  while (parked_.size() > kParkedCalls) {
    std::map<std::string, int> calls;
    for (const Parked& parked : parked_) ++calls[parked.from];
    unpark(std::ranges::max_element(parked_, {}, [&](const Parked& parked) { return calls[parked.from]; }));
  }
  return unparked;
}

void CallPort::wait_for_calls() {
  std::vector<pollfd> polled{{wake_.descriptor(), POLLIN, 0}};
  for (const Entrance& entrance : entrances_) polled.push_back({accepting_ ? entrance.socket.get() : -1, POLLIN, 0});
  const std::size_t before = polled.size();
  for (const Stranger& stranger : strangers_) {
    const short awaited = stranger.is_negotiated ? POLLIN : stranger.stream->awaited();
    polled.push_back({stranger.stream->descriptor(), awaited, 0});
  }
  bool has_parked = false;
  {
    const std::lock_guard lock(mutex_);
    has_parked = !parked_.empty();
  }
  const bool idle = accepting_ && strangers_.empty() && !has_parked;
  ::poll(polled.data(), polled.size(), idle ? -1 : kTickMs);
  wake_.lower();
  accepting_ = true;
  for (std::size_t i = 0; i < strangers_.size(); ++i) {
    strangers_[i].has_spoken = strangers_[i].has_spoken || (polled[before + i].revents & POLLIN) != 0;
    if (polled[before + i].revents != 0) listen_to(strangers_[i]);
    // Also if it says a byte now and then.
    if (strangers_[i].stream && strangers_[i].until <= Clock::now()) {
      let_go(strangers_[i], "it did not say who it is");
    }
  }
  std::erase_if(strangers_, [](const Stranger& stranger) { return !stranger.stream; });
  for (std::size_t i = 0; i < entrances_.size(); ++i) {
    if (polled[1 + i].revents != 0) accept_some(entrances_[i]);
  }
}

// A flood leaves time for those who were let in before.
void CallPort::accept_some(const Entrance& entrance) {
  for (std::size_t count = 0; count < kMostStrangers; ++count) {
    FileDescriptor socket(::accept4(entrance.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.is_open()) {
      accepting_ = errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM;
      return;
    }
    Result<std::unique_ptr<ByteStream>> stream = entrance.admit(std::move(socket));
    if (!stream) {
      log_refusal(stream.error().message);
      continue;
    }
    if (strangers_.size() == kMostStrangers) make_room();
    Stranger stranger{std::move(stream).value(), Clock::now() + kTimeToIntroduce};
    pollfd waiting{stranger.stream->descriptor(), POLLIN, 0};
    stranger.has_spoken = ::poll(&waiting, 1, 0) > 0;
    strangers_.push_back(std::move(stranger));
  }
}

void CallPort::make_room() {
  const auto silent =
      std::find_if(strangers_.begin(), strangers_.end(), [](const Stranger& one) { return !one.has_spoken; });
  const auto leaves = silent != strangers_.end() ? silent : strangers_.begin();
  let_go(*leaves, "too many callers have not said who they are");
  strangers_.erase(leaves);
}

void CallPort::listen_to(Stranger& stranger) {
  if (!stranger.is_negotiated) {
    const StreamResult negotiated = stranger.stream->negotiate();
    if (negotiated.kind == StreamResult::Kind::kBlocked) return;
    if (negotiated.kind == StreamResult::Kind::kEnded)
      return stranger.stream.reset();  // it only wanted to know who lives
    if (negotiated.kind == StreamResult::Kind::kBroken) return let_go(stranger, negotiated.reason);
    stranger.is_negotiated = true;
  }
  while (stranger.received < kHelloBytes) {
    const std::span<std::byte> rest = std::span(stranger.inbox).subspan(stranger.received);
    const iovec into{rest.data(), rest.size()};
    const StreamResult came = stranger.stream->read({&into, 1});
    if (came.kind == StreamResult::Kind::kBlocked) return;
    if (!came.moved() && stranger.received == 0) return stranger.stream.reset();  // likewise
    if (!came.moved()) return let_go(stranger, "it hung up before it said who it is");
    stranger.received += came.bytes;
  }
  const std::optional<CallerHello> hello = decode_hello(stranger.inbox);
  if (!hello) return let_go(stranger, "it does not speak this protocol");
  introduce({std::exchange(stranger.stream, {}), *hello});
}

void CallPort::let_go(Stranger& stranger, const std::string& why) {
  log_refusal(why);
  stranger.stream.reset();
}

void CallPort::log_refusal(const std::string& why) const {
  if (log_) log_(LogLine("connection_refused").add("reason", why).text());
}

void CallPort::introduce(IncomingCall call) {
  std::string from = host_of_caller(*call.stream);
  const std::lock_guard lock(mutex_);
  place({std::move(call), std::move(from), Clock::now() + kParkedTime});
}

void CallPort::place(Parked parked) {
  IncomingCall& call = parked.call;
  if (const std::optional<Refusal> objection = objection_to(call.hello.attempt)) {
    if (*objection == Refusal::kOver) ++fenced_;
    return refuse(std::move(call), *objection);
  }
  const auto inbox =
      std::find_if(open_.begin(), open_.end(), [&](const auto& one) { return one->attempt_ == call.hello.attempt; });
  if (inbox != open_.end()) return (*inbox)->put(std::move(call));
  parked_.push_back(std::move(parked));
}

std::optional<Refusal> CallPort::objection_to(const PeerAttempt& attempt) const {
  if (lineage_ && attempt.lineage != *lineage_) return Refusal::kOtherRun;
  const Try key{attempt.generation, attempt.nonce};
  const bool open = std::any_of(open_.begin(), open_.end(), [&](const auto& one) { return one->attempt_ == attempt; });
  if (given_up_.contains(key) || over_.contains(key) || (attempt.generation < newest_ && !open)) return Refusal::kOver;
  return std::nullopt;
}

void CallPort::refuse(IncomingCall call, Refusal refusal) {
  turn_away(std::move(call.stream), refusal);
  if (!log_) return;
  log_(LogLine("connection_refused")
           .add("caller", call.hello.caller.worker)
           .add("generation", call.hello.attempt.generation.value)
           .add("reason", to_string(refusal))
           .text());
}

}  // namespace everstep::trainer
