#include <algorithm>

#include <cuda_runtime_api.h>
#include <nccl.h>

#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {
namespace {

using State = NcclOutcome::State;

NcclOutcome to_outcome(ncclResult_t result, ncclComm_t communicator) {
  if (result == ncclSuccess) return {};
  if (result == ncclInProgress) return {State::kInProgress, {}};
  const std::string details = communicator == nullptr ? "" : ncclGetLastError(communicator);
  return {State::kFailed, ncclGetErrorString(result) + (details.empty() ? "" : ", " + details)};
}

NcclOutcome to_outcome(cudaError_t result) {
  if (result == cudaSuccess) return {};
  if (result == cudaErrorNotReady) return {State::kInProgress, {}};
  return {State::kFailed, cudaGetErrorString(result)};
}

Error cuda_error(const char* what, cudaError_t result) {
  return {ErrorCode::kUnavailable, std::string("CUDA: ") + what + ": " + cudaGetErrorString(result), {}};
}

ncclComm_t comm(NcclCommunicator communicator) { return static_cast<ncclComm_t>(communicator); }
cudaStream_t stream_of(CudaStream stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t event_of(CudaEvent event) { return static_cast<cudaEvent_t>(event); }

Result<NcclUniqueId> get_unique_id() {
  static_assert(sizeof(ncclUniqueId) == kNcclUniqueIdBytes);
  ncclUniqueId id{};
  if (const ncclResult_t result = ncclGetUniqueId(&id); result != ncclSuccess) {
    return Error{ErrorCode::kUnavailable, std::string("NCCL: no unique id: ") + ncclGetErrorString(result), {}};
  }
  NcclUniqueId bytes{};
  std::copy_n(reinterpret_cast<const std::byte*>(id.internal), bytes.size(), bytes.begin());
  return bytes;
}

NcclOutcome comm_init_rank(NcclCommunicator* communicator, const NcclUniqueId& bytes, int rank) {
  ncclUniqueId id{};
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  // Kernels of several links wait on the GPU side by side, beside compute: one block each leaves room for all.
  config.minCTAs = 1;
  config.maxCTAs = 1;
  ncclComm_t made = nullptr;
  const ncclResult_t result = ncclCommInitRankConfig(&made, 2, id, rank, &config);
  *communicator = made;
  return to_outcome(result, made);
}

NcclOutcome comm_get_async_error(NcclCommunicator communicator) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = ncclCommGetAsyncError(comm(communicator), &state);
  return to_outcome(asked == ncclSuccess ? state : asked, comm(communicator));
}

Result<CudaStream> stream_create() {
  cudaStream_t stream = nullptr;
  const cudaError_t result = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (result != cudaSuccess) return cuda_error("no stream", result);
  return static_cast<CudaStream>(stream);
}

Result<void*> allocate(std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t result = cudaMalloc(&memory, bytes);
  if (result != cudaSuccess) return cuda_error("no memory", result);
  return memory;
}

Result<CudaEvent> event_create() {
  cudaEvent_t event = nullptr;
  const cudaError_t result = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (result != cudaSuccess) return cuda_error("no event", result);
  return static_cast<CudaEvent>(event);
}

void add_nccl_calls(NcclApi& api) {
  api.get_version = [] {
    int version = 0;
    ncclGetVersion(&version);
    return version;
  };
  api.get_unique_id = get_unique_id;
  api.comm_init_rank = comm_init_rank;
  api.comm_get_async_error = comm_get_async_error;
  api.send = [](const void* from, std::size_t bytes, int peer, NcclCommunicator communicator, CudaStream stream) {
    return to_outcome(ncclSend(from, bytes, ncclInt8, peer, comm(communicator), stream_of(stream)), comm(communicator));
  };
  api.recv = [](void* into, std::size_t bytes, int peer, NcclCommunicator communicator, CudaStream stream) {
    return to_outcome(ncclRecv(into, bytes, ncclInt8, peer, comm(communicator), stream_of(stream)), comm(communicator));
  };
  // After these the communicator may be gone, so nothing is asked about it.
  api.comm_finalize = [](NcclCommunicator c) { return to_outcome(ncclCommFinalize(comm(c)), nullptr); };
  api.comm_destroy = [](NcclCommunicator c) { return to_outcome(ncclCommDestroy(comm(c)), nullptr); };
  api.comm_revoke = [](NcclCommunicator c) {
    return to_outcome(ncclCommRevoke(comm(c), NCCL_REVOKE_DEFAULT), nullptr);
  };
  api.comm_abort = [](NcclCommunicator c) { return to_outcome(ncclCommAbort(comm(c)), nullptr); };
}

void add_cuda_calls(NcclApi& api) {
  api.set_device = [](int device) { return to_outcome(cudaSetDevice(device)); };
  api.stream_create = stream_create;
  api.allocate = [](std::size_t bytes, CudaStream) { return allocate(bytes); };
  api.event_create = event_create;
  api.event_destroy = [](CudaEvent event) { cudaEventDestroy(event_of(event)); };
  api.event_record = [](CudaEvent event, CudaStream stream) {
    return to_outcome(cudaEventRecord(event_of(event), stream_of(stream)));
  };
  api.event_query = [](CudaEvent event) { return to_outcome(cudaEventQuery(event_of(event))); };
  api.stream_wait_event = [](CudaStream stream, CudaEvent event) {
    return to_outcome(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
  };
}

}  // namespace

NcclApi real_nccl_api() {
  NcclApi api;
  add_nccl_calls(api);
  add_cuda_calls(api);
  return api;
}

}  // namespace everstep::trainer
