#include "tests/accelerator/nccl_runs.h"

#include <chrono>
#include <map>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "tests/accelerator/emulated_nccl.h"
#include "tests/accelerator/prepared_device.h"
#include "trainer/nccl/nccl_transport.h"
#include "trainer/staging/staged_transport.h"

namespace everstep::accelerator {
namespace {

using namespace everstep::trainer;

class OnStreams final : public TorchDeviceMemory {
 public:
  explicit OnStreams(const Streams& streams) : TorchDeviceMemory(streams, {}) {}
};

// What a worker has, and the next run's worker of that place again: streams have threads.
struct Seat {
  explicit Seat(int hardware_queues) : device(fake_accelerator().new_device(hardware_queues)) {
    EmulatedNcclOptions own;
    own.device = device;
    const auto on_hang = [](const Error& error) { EVERSTEP_CHECK(false, error.message); };
    nccl = NcclDevice::open(emulated_nccl(fake_accelerator(), own),
                            {.abort_limit = std::chrono::seconds(60), .on_hang = on_hang})
               .value();
  }

  c10::Stream new_stream() const {
    return c10::Stream(c10::Stream::UNSAFE, fake_device(), fake_accelerator().new_stream(device));
  }

  DeviceId device;
  TorchDeviceMemory::Streams streams{new_stream(), {new_stream(), new_stream()}};
  std::shared_ptr<NcclDevice> nccl;
};

Seat& seat_of(int hardware_queues, int worker) {
  static std::mutex mutex;
  static auto* const seats = new std::map<std::pair<int, int>, Seat>;
  const std::lock_guard lock(mutex);
  return seats->try_emplace({hardware_queues, worker}, hardware_queues).first->second;
}

}  // namespace

RunChanges over_nccl(int hardware_queues, RunChanges changes) {
  prepared_device();
  RunChanges changed = changes;
  changed.program = [program = changes.program, hardware_queues](const TrainOptions& options, const DataSource& data,
                                                                 Transport& host,
                                                                 const TrainHooks& hooks) -> Result<TrainResult> {
    const Seat& seat = seat_of(hardware_queues, host.worker());
    NcclMeshRequest request;
    request.generation = options.generation;
    request.lineage = options.lineage;
    request.workers = options.schedule.depth * options.schedule.width;
    request.peers = nccl_peers(host.worker(), options.schedule.depth, options.schedule.width);
    request.on_missing = [](int, const std::string& why) { EVERSTEP_CHECK(false, why); };
    const auto mesh = connect_nccl(seat.nccl, host, request);
    if (!mesh) return mesh.error();
    OnStreams memory(seat.streams);
    const auto staged = make_staged_transport(host, memory);
    NcclTransportOptions own;
    own.compute = memory.compute_stream();
    own.generation = options.generation;
    own.lineage = options.lineage;
    own.poll = std::chrono::microseconds(200);
    const auto nccl = make_nccl_transport(**mesh, host, *staged, own);
    TrainHooks on_device = hooks;
    on_device.device = &memory;
    auto result = program(options, data, *nccl, on_device);
    if (result) EVERSTEP_TRY(nccl->flush(std::chrono::seconds(20)));
    return result;
  };
  return changed;
}

}  // namespace everstep::accelerator
