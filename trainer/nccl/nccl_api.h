#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace everstep::trainer {

// How a call into NCCL or CUDA went. Calls on non-blocking communicators may go on in the background; so do events.
struct NcclOutcome {
  enum class State : std::uint8_t { kDone, kInProgress, kFailed };

  State state = State::kDone;
  std::string error{};  // if it failed

  bool done() const { return state == State::kDone; }
  bool in_progress() const { return state == State::kInProgress; }
  bool failed() const { return state == State::kFailed; }
};

inline constexpr std::size_t kNcclUniqueIdBytes = 128;
using NcclUniqueId = std::array<std::byte, kNcclUniqueIdBytes>;

using NcclCommunicator = void*;
using CudaStream = void*;
using CudaEvent = void*;

// Exactly the calls of NCCL and CUDA that the transport makes, in plain types. The transport is logic over this table,
// so it compiles without CUDA, and a test can emulate NCCL. The names are NCCL's and CUDA's. Every function must be
// set.
struct NcclApi {
  std::function<int()> get_version;                   // 23007 for 2.30.7
  std::function<NcclOutcome(int device)> set_device;  // for the calling thread
  std::function<Result<NcclUniqueId>()> get_unique_id;
  // Two ranks, non-blocking. The communicator exists as soon as the call returns, unless it failed.
  std::function<NcclOutcome(NcclCommunicator*, const NcclUniqueId&, int rank)> comm_init_rank;
  std::function<NcclOutcome(NcclCommunicator)> comm_get_async_error;
  std::function<NcclOutcome(const void*, std::size_t bytes, int peer, NcclCommunicator, CudaStream)> send;
  std::function<NcclOutcome(void*, std::size_t bytes, int peer, NcclCommunicator, CudaStream)> recv;
  std::function<NcclOutcome(NcclCommunicator)> comm_finalize;
  std::function<NcclOutcome(NcclCommunicator)> comm_destroy;
  std::function<NcclOutcome(NcclCommunicator)> comm_revoke;
  std::function<NcclOutcome(NcclCommunicator)> comm_abort;

  // Streams and memory are never given back: whatever frees memory may make a GPU wait for all that runs on it.
  std::function<Result<CudaStream>()> stream_create;
  std::function<Result<void*>(std::size_t bytes, CudaStream)> allocate;  // for work on that stream
  std::function<Result<CudaEvent>()> event_create;
  std::function<void(CudaEvent)> event_destroy;
  std::function<NcclOutcome(CudaEvent, CudaStream)> event_record;
  std::function<NcclOutcome(CudaEvent)> event_query;
  std::function<NcclOutcome(CudaStream, CudaEvent)> stream_wait_event;
};

// NCCL for a kind of device, as --device names it. Whoever has it adds it, before workers begin.
using MakeNcclApi = std::function<Result<NcclApi>()>;
void add_nccl(const std::string& device_kind, MakeNcclApi make);

// kNotFound if this build or this host has none for that kind, or one that is too old.
Result<NcclApi> find_nccl(const std::string& device_kind);

// Whether a version of NCCL has all functions of the table; kNotFound: it is too old to revoke communicators.
Status check_nccl_version(int version);

// NVIDIA's, for GPUs of CUDA, in builds with CUDA only. The library is loaded now and not linked, so programs start
// without it: the first of `libraries` that there is, each a path or a name that the loader finds. Needs no GPU until
// it is used. kNotFound: there is none, or it is too old.
Result<NcclApi> load_nccl(const std::vector<std::string>& libraries);

// The same, from where scripts/setup puts it, else from where the loader looks.
Result<NcclApi> real_nccl_api();

}  // namespace everstep::trainer
