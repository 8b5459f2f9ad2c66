#pragma once

#include <chrono>
#include <memory>

#include "trainer/nccl/nccl_api.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

struct NcclTransportOptions {
  int device = 0;
  CudaStream compute = nullptr;                  // the stream that fills and reads payloads; null: CUDA's default one
  std::chrono::milliseconds abort_limit{5'000};  // for NCCL to give up its communicators after a failure
};

// Moves payloads between GPUs: buffers of kTensors and kCollectives lie in device memory and travel by NCCL.
//
// All else takes the `host` transport, which NCCL cannot replace: frame headers (checked on the processor before a
// payload counts), the ids from which the two ends of a link make their communicator, frames of kRecords (small, in
// host memory), goodbyes, and deaths, which its lifelines see at once while NCCL would wait. A header therefore never
// queues on the GPU. Payloads have no checksum here: computing one on the processor would mean copying them there, and
// the links below have their own.
//
// Transfers are moved on by every call and by a service thread, both by polling: NCCL and CUDA offer nothing to sleep
// on. After the first error all communicators are revoked and aborted within `abort_limit`. If NCCL hangs even in that
// (it has been seen to), the error says that the process must be ended; its communicators are lost to it.
//
// kNotFound if there is no such GPU, or if NCCL is too old to revoke communicators.
Result<std::unique_ptr<Transport>> make_nccl_transport(NcclApi api, std::unique_ptr<Transport> host,
                                                       const NcclTransportOptions& options);

}  // namespace everstep::trainer
