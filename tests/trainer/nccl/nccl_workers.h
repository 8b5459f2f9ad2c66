#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/accelerator/emulated_nccl.h"
#include "trainer/nccl/nccl_device.h"
#include "trainer/nccl/nccl_transport.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

// The accelerator of this process, of which each worker has a device. A mistake ends the process.
accelerator::Accelerator& nccl_accelerator();

struct NcclWorkerOptions {
  accelerator::EmulatedNcclOptions nccl{};
  int hardware_queues = 8;
  int lanes = 2;  // fewer than peers: streams of tests have threads, and never end
  std::chrono::milliseconds abort_limit{2'000};
  std::function<void(NcclApi&)> change = [](NcclApi&) {};  // the table that the adapter calls
  std::function<void(const Error&)> on_hang = [](const Error& error) { EVERSTEP_CHECK(false, error.message); };
};

// NCCL and the compute stream of one worker.
struct NcclWorker {
  explicit NcclWorker(const NcclWorkerOptions& options = {});

  // Memory for work on the compute stream.
  Buffer allocate(std::size_t bytes) const;
  // The compute stream writes or reads it. read() waits.
  void write(const Buffer& to, const Buffer& from) const;
  void read(const Buffer& from, const Buffer& to) const;

  accelerator::DeviceId device;
  accelerator::StreamId compute;
  std::shared_ptr<NcclDevice> nccl;
};

// All workers connect to each other, on a thread each, with what each has `nccl` of, or none. `change` may ask for
// something else.
using ChangeRequest = std::function<void(int worker, NcclMeshRequest& request)>;
std::vector<std::unique_ptr<NcclMesh>> connect_all(
    const std::vector<std::shared_ptr<NcclDevice>>& nccl, const std::vector<Transport*>& hosts,
    const ChangeRequest& change = [](int, NcclMeshRequest&) {});

// Frames of the host, as the contract's tests have them, that lie on a device on their way: what can goes by NCCL.
std::vector<std::unique_ptr<Transport>> make_nccl_transports(int workers, const NcclWorkerOptions& options = {});

}  // namespace everstep::trainer
