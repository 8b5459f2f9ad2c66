#include "trainer/threads/thread_transport.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/random.h"
#include "trainer/wire/transport_failure.h"

namespace everstep::trainer {
namespace {

using Clock = std::chrono::steady_clock;

struct Frame {
  FrameHeader header;
  Buffer payload;
  std::uint64_t checksum = 0;
  Clock::time_point arrives;
};

struct Receive {
  FrameHeader expected;
  Buffer into;
  std::optional<FrameHeader> received;
};

// Frames of one (sender, receiver, channel) and the receives that wait for them, both in order.
struct Stream {
  std::deque<Frame> frames;
  std::deque<std::shared_ptr<Receive>> receives;
};

enum class Presence : std::uint8_t { kHere, kLeft, kDead };

struct Member {
  Presence presence = Presence::kHere;
  TransportFailure failure;
};

// Tells whether bytes have changed. Gigabytes pass here, so it takes 32 at a time.
std::uint64_t payload_sum(const Buffer& payload) {
  constexpr std::uint64_t kPrime = 0x100000001B3;
  std::array<std::uint64_t, 4> words{};
  std::array<std::uint64_t, 4> sums{1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + sizeof(words) <= payload.size; at += sizeof(words)) {
    std::memcpy(words.data(), payload.data + at, sizeof(words));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = (sums[i] ^ words[i]) * kPrime;
  }
  std::uint64_t sum = byte_checksum({payload.data + at, payload.size - at});
  for (const std::uint64_t each : sums) sum = (sum ^ each) * kPrime;
  return sum;
}

Status take(const Frame& frame, const Receive& receive, int from) {
  EVERSTEP_TRY(check_frame(frame.header, receive.expected));
  if (payload_sum(frame.payload) != frame.checksum) {
    return Error{
        ErrorCode::kInternal,
        "worker " + std::to_string(from) + " changed the " + to_string(frame.header) + " before it was delivered",
        "keep the buffer unchanged until flush()"};
  }
  if (frame.payload.size != 0) std::memcpy(receive.into.data, frame.payload.data, frame.payload.size);
  return {};
}

// What all transports of a run share. Everything is guarded by `mutex`; any change wakes all waiters.
struct Hub {
  Hub(int workers, const ThreadDelays& frame_delays)
      : members(workers), streams(static_cast<std::size_t>(workers) * workers * kChannels), delays(frame_delays) {}

  Stream& stream(int from, int to, Channel channel) {
    const auto workers = members.size();
    return streams[(from * workers + to) * kChannels + static_cast<std::size_t>(channel)];
  }

  // The first error stays.
  void fail(int worker, Error error, std::optional<LostPeer> lost = {}) {
    TransportFailure& failure = members[worker].failure;
    const bool is_needed = !lost || lost->how != LostPeer::How::kClosed || failure.needs(lost->worker);
    is_needed ? failure.end(std::move(error), lost) : failure.interrupt(std::move(error), *lost);
    changed.notify_all();
  }

  // Delivers what has arrived, in order, into the receives that are posted. Either end may do it.
  void deliver(int from, int to, Channel channel) {
    Stream& stream = this->stream(from, to, channel);
    while (!stream.receives.empty() && !stream.frames.empty() && stream.frames.front().arrives <= Clock::now()) {
      const Frame frame = std::move(stream.frames.front());
      const std::shared_ptr<Receive> receive = std::move(stream.receives.front());
      stream.frames.pop_front();
      stream.receives.pop_front();
      changed.notify_all();
      if (Status taken = take(frame, *receive, from); !taken) return fail(to, taken.error());
      receive->received = frame.header;
    }
  }

  Clock::time_point next_arrival(const Stream& stream) {
    Clock::time_point arrives = Clock::now();
    if (delays.longest.count() == 0) return arrives;
    const auto longest = static_cast<std::uint64_t>(delays.longest.count());
    arrives += std::chrono::microseconds(RandomStream(delays.seed, 0).below(sent++, longest + 1));
    return stream.frames.empty() ? arrives : std::max(arrives, stream.frames.back().arrives);
  }

  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Member> members;
  std::vector<Stream> streams;
  ThreadDelays delays;
  std::uint64_t sent = 0;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Hub> hub, int worker) : hub_(std::move(hub)), worker_(worker) {}

  ~ThreadTransport() override {
    const std::lock_guard lock(hub_->mutex);
    if (me().presence != Presence::kHere) return;
    me().presence = Presence::kDead;
    for (int peer = 0; peer < workers(); ++peer) {
      hub_->fail(peer, {ErrorCode::kUnavailable, "worker " + std::to_string(worker_) + " died", {}},
                 LostPeer{worker_, LostPeer::How::kClosed});
    }
  }

  ThreadTransport(const ThreadTransport&) = delete;
  ThreadTransport& operator=(const ThreadTransport&) = delete;

  int worker() const override { return worker_; }
  int workers() const override { return static_cast<int>(hub_->members.size()); }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    EVERSTEP_CHECK(header.length == payload.size, "the header's length is not the payload's size");
    const std::uint64_t checksum = payload_sum(payload);
    const std::lock_guard lock(hub_->mutex);
    const TransportFailure& failure = me().failure;
    if (failure.ended() || (failure.is_interrupted() && !failure.needs(to))) return;
    if (to != worker_ && hub_->members[to].presence == Presence::kLeft) {
      if (failure.goes_on()) return;
      return hub_->fail(worker_, {ErrorCode::kUnavailable, "worker " + std::to_string(to) + " has left", {}},
                        LostPeer{to, LostPeer::How::kRefused});
    }
    Stream& stream = hub_->stream(worker_, to, channel);
    const Clock::time_point arrives = hub_->next_arrival(stream);
    stream.frames.push_back({header, std::move(payload), checksum, arrives});
    hub_->changed.notify_all();
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    EVERSTEP_CHECK(expected.length == into.size, "the expected length is not the buffer's size");
    const std::lock_guard lock(hub_->mutex);
    auto receive = std::make_shared<Receive>(Receive{expected, std::move(into), std::nullopt});
    hub_->stream(from, worker_, channel).receives.push_back(receive);
    pending_.emplace(next_id_, Pending{from, channel, std::move(receive)});
    return next_id_++;
  }

  bool ready(ReceiveId receive) override {
    const std::lock_guard lock(hub_->mutex);
    return over(find(receive));
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    std::unique_lock lock(hub_->mutex);
    const Pending pending = find(receive);
    const Clock::time_point deadline = Clock::now() + timeout;
    while (!over(pending)) {
      if (Clock::now() >= deadline) {
        hub_->fail(worker_,
                   {ErrorCode::kDeadlineExceeded,
                    "the " + to_string(pending.receive->expected) + " did not come from worker " +
                        std::to_string(pending.from) + " within " + std::to_string(timeout.count()) + " ms",
                    {}},
                   LostPeer{pending.from, LostPeer::How::kSilent});
        break;
      }
      hub_->changed.wait_until(lock, std::min(deadline, next_change(pending)));
    }
    if (const Error* error = me().failure.with(pending.from)) return *error;
    pending_.erase(receive);
    return *pending.receive->received;
  }

  Status flush(std::chrono::milliseconds timeout) override {
    return wait_for(timeout, "flush: frames are still undelivered", [this] { return all_delivered(); });
  }

  Status status() override {
    const std::lock_guard lock(hub_->mutex);
    return outcome();
  }

  std::optional<LostPeer> lost() const override {
    const std::lock_guard lock(hub_->mutex);
    return hub_->members[worker_].failure.lost();
  }

  void need_only(const std::vector<int>& peers) override {
    const std::lock_guard lock(hub_->mutex);
    me().failure.need_only(peers);
  }

  Status go_on() override {
    const std::lock_guard lock(hub_->mutex);
    me().failure.go_on();
    return outcome();
  }

  void abort(Error reason) override {
    const std::lock_guard lock(hub_->mutex);
    reason.code = ErrorCode::kCancelled;
    hub_->fail(worker_, std::move(reason));
  }

  Status close(std::chrono::milliseconds timeout) override {
    EVERSTEP_TRY(status());
    leave();
    return wait_for(timeout, "close: a peer did not say goodbye", [this] { return all_left(); });
  }

  void leave() override {
    const std::lock_guard lock(hub_->mutex);
    me().presence = Presence::kLeft;
    hub_->changed.notify_all();
  }

 private:
  struct Pending {
    int from;
    Channel channel;
    std::shared_ptr<Receive> receive;
  };

  Member& me() { return hub_->members[worker_]; }

  Status outcome() { return me().failure.outcome(worker_); }

  const Pending& find(ReceiveId receive) const {
    const auto found = pending_.find(receive);
    EVERSTEP_CHECK(found != pending_.end(), "a receive is waited for that was not posted or is over");
    return found->second;
  }

  // Whether wait() would return now.
  bool over(const Pending& pending) {
    hub_->deliver(pending.from, worker_, pending.channel);
    return me().failure.with(pending.from) != nullptr || pending.receive->received;
  }

  Clock::time_point next_change(const Pending& pending) {
    const Stream& stream = hub_->stream(pending.from, worker_, pending.channel);
    return stream.frames.empty() ? Clock::time_point::max() : stream.frames.front().arrives;
  }

  bool all_delivered() {
    bool all = true;
    for (int to = 0; to < workers(); ++to) {
      if (me().failure.goes_on() && !me().failure.needs(to)) continue;
      for (int index = 0; index < kChannels; ++index) {
        const auto channel = static_cast<Channel>(index);
        hub_->deliver(worker_, to, channel);
        all = all && hub_->stream(worker_, to, channel).frames.empty();
      }
    }
    return all;
  }

  bool all_left() const {
    return std::all_of(hub_->members.begin(), hub_->members.end(),
                       [](const Member& member) { return member.presence != Presence::kHere; });
  }

  template <typename Condition>
  Status wait_for(std::chrono::milliseconds timeout, const char* late, Condition condition) {
    std::unique_lock lock(hub_->mutex);
    const Clock::time_point deadline = Clock::now() + timeout;
    while (me().failure.with(worker_) == nullptr && !condition()) {
      if (Clock::now() >= deadline) {
        hub_->fail(worker_, {ErrorCode::kDeadlineExceeded, late, {}});
      } else {
        // Frames that are held back arrive without a signal.
        hub_->changed.wait_until(lock, std::min(deadline, Clock::now() + std::chrono::milliseconds(1)));
      }
    }
    return outcome();
  }

  std::shared_ptr<Hub> hub_;
  int worker_;
  std::map<ReceiveId, Pending> pending_;
  ReceiveId next_id_ = 1;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> make_thread_transports(int workers, const ThreadDelays& delays) {
  EVERSTEP_CHECK(workers > 0, "a run has at least one worker");
  auto hub = std::make_shared<Hub>(workers, delays);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int worker = 0; worker < workers; ++worker) {
    transports.push_back(std::make_unique<ThreadTransport>(hub, worker));
  }
  return transports;
}

}  // namespace everstep::trainer
