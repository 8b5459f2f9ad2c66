#include "tests/trainer/nccl/nccl_workers.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "trainer/threads/thread_transport.h"

namespace everstep::trainer {
namespace {

using accelerator::emulated_nccl;
using accelerator::native_handle;

using Workers = std::vector<std::unique_ptr<NcclWorker>>;

// Frames of the contract's tests lie on the host.
class OnDevice final : public Transport {
 public:
  OnDevice(std::unique_ptr<Transport> host, std::shared_ptr<const Workers> all, std::unique_ptr<NcclMesh> mesh)
      : all_(std::move(all)), host_(std::move(host)), worker_((*all_)[host_->worker()].get()), mesh_(std::move(mesh)) {
    NcclTransportOptions options;
    options.compute = native_handle(worker_->compute);
    nccl_ = make_nccl_transport(*mesh_, *host_, *host_, options);
  }

  int worker() const override { return nccl_->worker(); }
  int workers() const override { return nccl_->workers(); }

  void send(int to, Channel channel, const FrameHeader& header, Buffer payload) override {
    if (lies_on_device(to, channel, payload)) {
      const Buffer on_device = worker_->allocate(payload.size);
      worker_->write(on_device, payload);
      payload = on_device;
    }
    nccl_->send(to, channel, header, std::move(payload));
  }

  ReceiveId post_receive(int from, Channel channel, const FrameHeader& expected, Buffer into) override {
    if (!lies_on_device(from, channel, into)) return nccl_->post_receive(from, channel, expected, std::move(into));
    const Buffer on_device = worker_->allocate(into.size);
    const ReceiveId id = nccl_->post_receive(from, channel, expected, on_device);
    landings_.emplace(id, std::pair(on_device, into));
    return id;
  }

  bool ready(ReceiveId receive) override { return nccl_->ready(receive); }
  Result<FrameHeader> wait(ReceiveId receive, std::chrono::milliseconds timeout) override {
    auto header = nccl_->wait(receive, timeout);
    if (!header) return header;
    if (const auto landing = landings_.extract(receive)) worker_->read(landing.mapped().first, landing.mapped().second);
    return header;
  }
  Status flush(std::chrono::milliseconds timeout) override { return nccl_->flush(timeout); }
  Status status() override { return nccl_->status(); }
  std::optional<LostPeer> lost() const override { return nccl_->lost(); }
  void need_only(const std::vector<int>& peers) override {
    needed_ = peers;
    nccl_->need_only(peers);
  }
  Status go_on() override {
    reached_ = needed_;
    return nccl_->go_on();
  }
  void abort(Error reason) override { nccl_->abort(std::move(reason)); }
  Status close(std::chrono::milliseconds timeout) override { return nccl_->close(timeout); }
  void leave() override { nccl_->leave(); }

 private:
  bool lies_on_device(int peer, Channel channel, const Buffer& payload) const {
    const bool is_bulk = channel == Channel::kTensors || channel == Channel::kCollectives;
    const bool is_reached = !reached_ || std::find(reached_->begin(), reached_->end(), peer) != reached_->end();
    return is_bulk && is_reached && !payload.empty() && peer != worker();
  }

  std::shared_ptr<const Workers> all_;  // ends with the last: communicators end in order if both ends do
  std::vector<int> needed_;
  std::optional<std::vector<int>> reached_;
  std::unique_ptr<Transport> host_;
  const NcclWorker* worker_;
  std::unique_ptr<NcclMesh> mesh_;
  std::unique_ptr<Transport> nccl_;
  std::map<ReceiveId, std::pair<Buffer, Buffer>> landings_;  // given back first: transfers may still have them
};

}  // namespace

accelerator::Accelerator& nccl_accelerator() {
  // Its work may outlast a test.
  static auto* const made = new accelerator::Accelerator;
  return *made;
}

NcclWorker::NcclWorker(const NcclWorkerOptions& options)
    : device(nccl_accelerator().new_device(options.hardware_queues)), compute(nccl_accelerator().new_stream(device)) {
  accelerator::EmulatedNcclOptions own = options.nccl;
  own.device = device;
  NcclApi api = emulated_nccl(nccl_accelerator(), own);
  options.change(api);
  nccl = NcclDevice::open(
             std::move(api),
             {.device = 0, .lanes = options.lanes, .abort_limit = options.abort_limit, .on_hang = options.on_hang})
             .value();
}

Buffer NcclWorker::allocate(std::size_t bytes) const {
  void* const memory = nccl_accelerator().allocate(bytes, compute);
  const auto release = [](void* address) { nccl_accelerator().release(address); };
  return {std::shared_ptr<void>(memory, release), static_cast<std::byte*>(memory), bytes, Buffer::Place::kDevice};
}

void NcclWorker::write(const Buffer& to, const Buffer& from) const {
  nccl_accelerator().launch(
      compute, "write", {{to.data, to.size, true}},
      [at = nccl_accelerator().kernel_address(to.data), from] { std::memcpy(at, from.data, from.size); });
}

void NcclWorker::read(const Buffer& from, const Buffer& to) const {
  nccl_accelerator().launch(
      compute, "read", {{from.data, from.size, false}},
      [at = nccl_accelerator().kernel_address(from.data), to] { std::memcpy(to.data, at, to.size); });
  nccl_accelerator().synchronize(compute);
}

std::vector<std::unique_ptr<NcclMesh>> connect_all(const std::vector<std::shared_ptr<NcclDevice>>& nccl,
                                                   const std::vector<Transport*>& hosts, const ChangeRequest& change) {
  std::vector<std::unique_ptr<NcclMesh>> meshes(hosts.size());
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < hosts.size(); ++me) {
    threads.emplace_back([&, me] {
      NcclMeshRequest request;
      request.workers = static_cast<int>(hosts.size());
      request.why_none = "no NCCL was found";
      request.peers = nccl_peers(static_cast<int>(me), request.workers, 1);
      change(static_cast<int>(me), request);
      meshes[me] = connect_nccl(nccl[me], *hosts[me], request).value();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return meshes;
}

std::vector<std::unique_ptr<Transport>> make_nccl_transports(int workers, const NcclWorkerOptions& options) {
  auto hosts = make_thread_transports(workers);
  Workers made;
  std::vector<std::shared_ptr<NcclDevice>> nccl;
  std::vector<Transport*> wires;
  for (const auto& host : hosts) {
    made.push_back(std::make_unique<NcclWorker>(options));
    nccl.push_back(made.back()->nccl);
    wires.push_back(host.get());
  }
  auto meshes = connect_all(nccl, wires);
  const auto all = std::make_shared<const Workers>(std::move(made));
  std::vector<std::unique_ptr<Transport>> transports;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    transports.push_back(std::make_unique<OnDevice>(std::move(hosts[i]), all, std::move(meshes[i])));
  }
  return transports;
}

}  // namespace everstep::trainer
