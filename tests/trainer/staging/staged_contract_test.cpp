// What every transport promises, of frames that lie on a device: over threads and over real sockets.
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "tests/trainer/socket/wires.h"
#include "tests/trainer/staging/held_memory.h"
#include "tests/trainer/wire/transport_contract.h"
#include "trainer/staging/staged_transport.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

// All that passes through it lies on a device, and the staged transport is its own.
class FromDevice final : public Transport {
 public:
  explicit FromDevice(std::unique_ptr<Transport> host) : host_(std::move(host)) {}

  int worker() const override { return staged_->worker(); }
  int workers() const override { return staged_->workers(); }
  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    staged_->send(to, channel, header, on_device(std::move(payload)));
  }
  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    return staged_->post_receive(from, channel, expected, on_device(std::move(into)));
  }
  bool ready(ReceiveId receive) override { return staged_->ready(receive); }
  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    return staged_->wait(receive, timeout);
  }
  Status flush(std::chrono::milliseconds timeout) override { return staged_->flush(timeout); }
  Status status() override { return staged_->status(); }
  std::optional<LostPeer> lost() const override { return staged_->lost(); }
  void need_only(const std::vector<int>& peers) override { staged_->need_only(peers); }
  Status go_on() override { return staged_->go_on(); }
  void abort(Error reason) override { staged_->abort(std::move(reason)); }
  Status close(std::chrono::milliseconds timeout) override { return staged_->close(timeout); }
  void leave() override { staged_->leave(); }

 private:
  static Buffer on_device(Buffer buffer) {
    buffer.place = Buffer::Place::kDevice;
    return buffer;
  }

  std::unique_ptr<Transport> host_;
  HeldMemory memory_;
  std::unique_ptr<Transport> staged_ = make_staged_transport(*host_, memory_);
};

std::vector<std::unique_ptr<Transport>> from_devices(std::vector<std::unique_ptr<Transport>> hosts) {
  std::vector<std::unique_ptr<Transport>> transports;
  for (auto& host : hosts) transports.push_back(std::make_unique<FromDevice>(std::move(host)));
  return transports;
}

std::vector<std::unique_ptr<Transport>> over_threads(int workers) {
  return from_devices(make_thread_transports(workers));
}
std::vector<std::unique_ptr<Transport>> over_unix_sockets(int workers) {
  return from_devices(make_socket_transports(workers));
}
std::vector<std::unique_ptr<Transport>> over_tls_sockets(int workers) {
  return from_devices(make_socket_transports(workers, tls_options()));
}

INSTANTIATE_TEST_SUITE_P(Staged, TransportContract,
                         testing::Values(TransportMaker{"Threads", over_threads},
                                         TransportMaker{"Unix", over_unix_sockets},
                                         TransportMaker{"Tls", over_tls_sockets}),
                         maker_name);

}  // namespace
}  // namespace everstep::trainer
