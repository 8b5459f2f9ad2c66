#pragma once

#include <utility>
#include <vector>

#include "trainer/wire/transport.h"

namespace everstep::trainer {

// Hands every call on to another transport, which must outlive it. For those that change a few of them.
class WrappedTransport : public Transport {
 public:
  explicit WrappedTransport(Transport& inner) : inner_(inner) {}

  int worker() const override { return inner_.worker(); }
  int workers() const override { return inner_.workers(); }
  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    inner_.send(to, channel, header, std::move(payload));
  }
  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    return inner_.post_receive(from, channel, expected, std::move(into));
  }
  bool ready(ReceiveId receive) override { return inner_.ready(receive); }
  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    return inner_.wait(receive, timeout);
  }
  Status flush(std::chrono::milliseconds timeout) override { return inner_.flush(timeout); }
  Status status() override { return inner_.status(); }
  std::optional<LostPeer> lost() const override { return inner_.lost(); }
  void need_only(const std::vector<int>& peers) override { inner_.need_only(peers); }
  Status go_on() override { return inner_.go_on(); }
  void abort(Error reason) override { inner_.abort(std::move(reason)); }
  Status close(std::chrono::milliseconds timeout) override { return inner_.close(timeout); }
  void leave() override { inner_.leave(); }
  void break_off() override { inner_.break_off(); }

 private:
  Transport& inner_;
};

}  // namespace everstep::trainer
