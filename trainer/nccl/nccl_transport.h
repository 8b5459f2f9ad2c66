#pragma once

#include <chrono>
#include <memory>

#include "trainer/nccl/nccl_mesh.h"
#include "trainer/wire/transport.h"

namespace everstep::trainer {

struct NcclTransportOptions {
  CudaStream compute = nullptr;  // the stream that fills and reads payloads
  // What credits are made out to.
  std::uint64_t lineage = 0;
  Generation generation{};
  std::chrono::microseconds poll{50};  // NCCL and CUDA offer nothing to sleep on
};

// Carries frames of kTensors and kCollectives whose payload lies on a device to and from workers that the mesh has
// links with; all else takes `others`, which carries it through `host`.
//
// A transfer is launched only when both ends have their buffer: a GPU waits for whatever its streams are given, so a
// transfer without a partner could hold up the one that its partner waits for. Three steps over the wire of the hosts:
// the sender's notice (the frame's header, checked on the processor before a byte counts), the receiver's credit ("send
// now": its receive is launched, on a lane that was free), the sender's launch. A link has one transfer at a time, and
// a tensor goes before a piece of a sum. What a lane is given waits for nothing but the work that the compute stream
// had when the frame was handed over. So every launched send has a launched receive, and ends by itself.
//
// A service thread moves transfers on. The calling thread belongs to `compute`. All of the arguments must outlive the
// transport; what it has not done when it ends is ended beside the caller.
std::unique_ptr<Transport> make_nccl_transport(NcclMesh& mesh, Transport& host, Transport& others,
                                               const NcclTransportOptions& options);

}  // namespace everstep::trainer
