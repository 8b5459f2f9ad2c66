#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "trainer/wire/transport.h"

namespace everstep::trainer {

// One call of a worker to its transport. Those whose number depends on timing (ready, status) do not count.
struct TransportCall {
  enum class Kind : std::uint8_t { kSend, kPostReceive, kWait };

  std::int64_t number = 0;  // from 0
  Kind kind = Kind::kSend;
  Channel channel = Channel::kTensors;  // of kSend and kPostReceive, as is the header
  FrameHeader header;
};

using CallTest = std::function<bool(const TransportCall&)>;

// A transport whose worker dies right before the first call that `dies_at` names: the others see it when no call of its
// own is under way any more, and every call fails from then on.
class MortalTransport final : public Transport {
 public:
  MortalTransport(std::unique_ptr<Transport> inner, CallTest dies_at)
      : inner_(std::move(inner)),
        worker_(inner_->worker()),
        workers_(inner_->workers()),
        dies_at_(std::move(dies_at)) {}

  bool is_dead() const { return inner() == nullptr; }
  std::int64_t calls() const { return calls_; }

  // Frames that are lost on the way, while the connection lives. None unless set.
  CallTest loses;

  std::function<void(const TransportCall&)> observe;  // may be empty

  int worker() const override { return worker_; }
  int workers() const override { return workers_; }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    const auto alive = next_call(TransportCall::Kind::kSend, channel, header);
    if (alive) alive->send(to, channel, header, std::move(payload));
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    const auto alive = next_call(TransportCall::Kind::kPostReceive, channel, expected);
    return alive ? alive->post_receive(from, channel, expected, std::move(into)) : 0;
  }

  bool ready(ReceiveId receive) override {
    const auto alive = inner();
    return !alive || alive->ready(receive);
  }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    const auto alive = next_call(TransportCall::Kind::kWait, Channel::kTensors, {});
    if (!alive) return death();
    return alive->wait(receive, timeout);
  }

  Status flush(std::chrono::milliseconds timeout) override {
    const auto alive = inner();
    return alive ? alive->flush(timeout) : death();
  }
  Status status() override {
    const auto alive = inner();
    return alive ? alive->status() : death();
  }
  std::optional<LostPeer> lost() const override {
    const auto alive = inner();
    return alive ? alive->lost() : std::nullopt;
  }
  void need_only(const std::vector<int>& peers) override {
    if (const auto alive = inner()) alive->need_only(peers);
  }
  Status go_on() override {
    const auto alive = inner();
    return alive ? alive->go_on() : death();
  }
  void abort(Error reason) override {
    if (const auto alive = inner()) alive->abort(std::move(reason));
  }
  Status close(std::chrono::milliseconds timeout) override {
    const auto alive = inner();
    return alive ? alive->close(timeout) : death();
  }
  void leave() override {
    if (const auto alive = inner()) alive->leave();
  }

 private:
  static Error death() { return {ErrorCode::kCancelled, "this worker is dead", ""}; }

  // Nothing: it is dead.
  std::shared_ptr<Transport> inner() const {
    const std::scoped_lock lock(mutex_);
    return inner_;
  }

  // The same, or nothing because the frame is lost.
  std::shared_ptr<Transport> next_call(TransportCall::Kind kind, Channel channel, const FrameHeader& header) {
    std::shared_ptr<Transport> dying;  // ends when others may call again
    const std::scoped_lock lock(mutex_);
    const TransportCall call{calls_++, kind, channel, header};
    if (observe) observe(call);
    if (inner_ && dies_at_ && dies_at_(call)) {
      dying = std::exchange(inner_, nullptr);
      dying->abort(death());  // whoever waits there
    }
    const bool is_lost = kind == TransportCall::Kind::kSend && loses && loses(call);
    return is_lost ? nullptr : inner_;
  }

  mutable std::mutex mutex_;
  std::shared_ptr<Transport> inner_;
  int worker_;
  int workers_;
  CallTest dies_at_;
  std::int64_t calls_ = 0;
};

}  // namespace everstep::trainer
