#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

// A transport whose worker dies right before the first call that `dies_at` names: the others see it at once, and every
// call of its own fails from then on.
class MortalTransport final : public Transport {
 public:
  MortalTransport(std::unique_ptr<Transport> inner, CallTest dies_at)
      : inner_(std::move(inner)),
        worker_(inner_->worker()),
        workers_(inner_->workers()),
        dies_at_(std::move(dies_at)) {}

  bool is_dead() const { return inner_ == nullptr; }
  std::int64_t calls() const { return calls_; }

  // Frames that are lost on the way, while the connection lives. None unless set.
  CallTest loses;

  std::function<void(const TransportCall&)> observe;  // may be empty

  int worker() const override { return worker_; }
  int workers() const override { return workers_; }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    const TransportCall call = next_call(TransportCall::Kind::kSend, channel, header);
    if (!is_dead() && !(loses && loses(call))) inner_->send(to, channel, header, std::move(payload));
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    next_call(TransportCall::Kind::kPostReceive, channel, expected);
    return is_dead() ? 0 : inner_->post_receive(from, channel, expected, std::move(into));
  }

  bool ready(ReceiveId receive) override { return is_dead() || inner_->ready(receive); }

  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    next_call(TransportCall::Kind::kWait, Channel::kTensors, {});
    if (is_dead()) return death();
    return inner_->wait(receive, timeout);
  }

  Status flush(std::chrono::milliseconds timeout) override { return is_dead() ? death() : inner_->flush(timeout); }
  Status status() override { return is_dead() ? death() : inner_->status(); }
  std::optional<LostPeer> lost() const override { return is_dead() ? std::nullopt : inner_->lost(); }
  void need_only(const std::vector<int>& peers) override {
    if (!is_dead()) inner_->need_only(peers);
  }
  Status go_on() override { return is_dead() ? death() : inner_->go_on(); }
  void abort(Error reason) override {
    if (!is_dead()) inner_->abort(std::move(reason));
  }
  Status close(std::chrono::milliseconds timeout) override { return is_dead() ? death() : inner_->close(timeout); }
  void leave() override {
    if (!is_dead()) inner_->leave();
  }

 private:
  static Error death() { return {ErrorCode::kCancelled, "this worker is dead", ""}; }

  TransportCall next_call(TransportCall::Kind kind, Channel channel, const FrameHeader& header) {
    const TransportCall call{calls_++, kind, channel, header};
    if (observe) observe(call);
    if (!is_dead() && dies_at_ && dies_at_(call)) inner_.reset();
    return call;
  }

  std::unique_ptr<Transport> inner_;
  int worker_;
  int workers_;
  CallTest dies_at_;
  std::int64_t calls_ = 0;
};

}  // namespace everstep::trainer
