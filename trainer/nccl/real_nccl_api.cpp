#include <algorithm>
#include <memory>

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>

#include "trainer/nccl/nccl_api.h"

namespace everstep::trainer {
namespace {

using State = NcclOutcome::State;

// The functions of the library that was loaded, under NCCL's names.
struct Functions {
  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init_rank_config = nullptr;
  decltype(&ncclCommGetAsyncError) comm_get_async_error = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) recv = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommRevoke) comm_revoke = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;

  NcclOutcome to_outcome(ncclResult_t result, ncclComm_t communicator) const {
    if (result == ncclSuccess) return {};
    if (result == ncclInProgress) return {State::kInProgress, {}};
    const std::string details = communicator == nullptr ? "" : get_last_error(communicator);
    return {State::kFailed, get_error_string(result) + (details.empty() ? "" : ", " + details)};
  }
};
using Nccl = std::shared_ptr<const Functions>;

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

Result<NcclUniqueId> get_unique_id(const Functions& nccl) {
  static_assert(sizeof(ncclUniqueId) == kNcclUniqueIdBytes);
  ncclUniqueId id{};
  if (const ncclResult_t result = nccl.get_unique_id(&id); result != ncclSuccess) {
    return Error{ErrorCode::kUnavailable, std::string("NCCL: no unique id: ") + nccl.get_error_string(result), {}};
  }
  NcclUniqueId bytes{};
  std::copy_n(reinterpret_cast<const std::byte*>(id.internal), bytes.size(), bytes.begin());
  return bytes;
}

NcclOutcome comm_init_rank(const Functions& nccl, NcclCommunicator* communicator, const NcclUniqueId& bytes, int rank) {
  ncclUniqueId id{};
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(id.internal));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  // Kernels of several links wait on the GPU side by side, beside compute: one block each leaves room for all.
  config.minCTAs = 1;
  config.maxCTAs = 1;
  ncclComm_t made = nullptr;
  const ncclResult_t result = nccl.comm_init_rank_config(&made, 2, id, rank, &config);
  *communicator = made;
  return nccl.to_outcome(result, made);
}

NcclOutcome comm_get_async_error(const Functions& nccl, NcclCommunicator communicator) {
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = nccl.comm_get_async_error(comm(communicator), &state);
  return nccl.to_outcome(asked == ncclSuccess ? state : asked, comm(communicator));
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

void add_nccl_calls(NcclApi& api, const Nccl& nccl) {
  api.get_unique_id = [nccl] { return get_unique_id(*nccl); };
  api.comm_init_rank = [nccl](NcclCommunicator* made, const NcclUniqueId& id, int rank) {
    return comm_init_rank(*nccl, made, id, rank);
  };
  api.comm_get_async_error = [nccl](NcclCommunicator c) { return comm_get_async_error(*nccl, c); };
  api.send = [nccl](const void* from, std::size_t bytes, int peer, NcclCommunicator c, CudaStream stream) {
    return nccl->to_outcome(nccl->send(from, bytes, ncclInt8, peer, comm(c), stream_of(stream)), comm(c));
  };
  api.recv = [nccl](void* into, std::size_t bytes, int peer, NcclCommunicator c, CudaStream stream) {
    return nccl->to_outcome(nccl->recv(into, bytes, ncclInt8, peer, comm(c), stream_of(stream)), comm(c));
  };
  // After these the communicator may be gone, so nothing is asked about it.
  api.comm_finalize = [nccl](NcclCommunicator c) { return nccl->to_outcome(nccl->comm_finalize(comm(c)), nullptr); };
  api.comm_destroy = [nccl](NcclCommunicator c) { return nccl->to_outcome(nccl->comm_destroy(comm(c)), nullptr); };
  api.comm_revoke = [nccl](NcclCommunicator c) {
    return nccl->to_outcome(nccl->comm_revoke(comm(c), NCCL_REVOKE_DEFAULT), nullptr);
  };
  api.comm_abort = [nccl](NcclCommunicator c) { return nccl->to_outcome(nccl->comm_abort(comm(c)), nullptr); };
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

template <typename Function>
Status find(void* library, const char* name, Function& function) {
  void* const found = ::dlsym(library, name);
  if (found == nullptr) return not_found(std::string("NCCL cannot be used: it has no function ") + name);
  function = reinterpret_cast<Function>(found);
  return {};
}

Status find_all(void* library, Functions& nccl) {
  EVERSTEP_TRY(find(library, "ncclGetErrorString", nccl.get_error_string));
  EVERSTEP_TRY(find(library, "ncclGetLastError", nccl.get_last_error));
  EVERSTEP_TRY(find(library, "ncclGetUniqueId", nccl.get_unique_id));
  EVERSTEP_TRY(find(library, "ncclCommInitRankConfig", nccl.comm_init_rank_config));
  EVERSTEP_TRY(find(library, "ncclCommGetAsyncError", nccl.comm_get_async_error));
  EVERSTEP_TRY(find(library, "ncclSend", nccl.send));
  EVERSTEP_TRY(find(library, "ncclRecv", nccl.recv));
  EVERSTEP_TRY(find(library, "ncclCommFinalize", nccl.comm_finalize));
  EVERSTEP_TRY(find(library, "ncclCommDestroy", nccl.comm_destroy));
  EVERSTEP_TRY(find(library, "ncclCommRevoke", nccl.comm_revoke));
  return find(library, "ncclCommAbort", nccl.comm_abort);
}

Result<int> version_of(void* library) {
  decltype(&ncclGetVersion) get_version = nullptr;
  EVERSTEP_TRY(find(library, "ncclGetVersion", get_version));
  int version = 0;
  get_version(&version);
  return version;
}

}  // namespace

Result<NcclApi> load_nccl(const std::vector<std::string>& libraries) {
  void* library = nullptr;
  std::string why;
  for (const std::string& name : libraries) {
    library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: NCCL has threads
    if (library != nullptr) break;
    why = ::dlerror();  // the last one: hosts without NCCL have none of them
  }
  if (library == nullptr) {
    return not_found("NCCL was not found: " + why, "scripts/setup --cuda installs it, and --transport=host needs none");
  }
  // Before all else: an older one lacks functions, and has others for what the newer header says.
  const auto version = version_of(library);
  if (!version) return version.error();
  EVERSTEP_TRY(check_nccl_version(*version));
  const auto nccl = std::make_shared<Functions>();
  EVERSTEP_TRY(find_all(library, *nccl));
  NcclApi api;
  api.get_version = [found = *version] { return found; };
  add_nccl_calls(api, nccl);
  add_cuda_calls(api);
  return api;
}

Result<NcclApi> real_nccl_api() { return load_nccl({EVERSTEP_NCCL, "libnccl.so.2"}); }

}  // namespace everstep::trainer
