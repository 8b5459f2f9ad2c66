// The calls of CUDA's runtime about memory. No byte of a GPU exists.
#include <cstring>

#include <cuda_runtime_api.h>

#include "tests/cuda_runtime/state.h"
#include "tests/cuda_runtime/streams.h"

namespace everstep::null_cuda {
namespace {

// What comes from a GPU is zero.
void write_zeros(void* to, std::size_t bytes) {
  if (!addresses().at(to).is_shared) std::memset(to, 0, bytes);
}

// A fault if it is not there to be read.
void read_ends(const void* from, std::size_t bytes) {
  const auto* const begin = static_cast<const volatile char*>(from);
  if (bytes == 0) return;
  (void)begin[0];
  (void)begin[bytes - 1];
}

// Whether the host can go on while it is under way: not with memory that is not pinned.
bool copy(void* to, const void* from, std::size_t bytes) {
  const Where target = addresses().at(to).where;
  const Where source = addresses().at(from).where;
  if (target == Where::kGpu && source != Where::kGpu) read_ends(from, bytes);
  if (target != Where::kGpu && source == Where::kGpu) write_zeros(to, bytes);
  if (target != Where::kGpu && source != Where::kGpu) std::memmove(to, from, bytes);
  return target != Where::kPageable && source != Where::kPageable;
}

}  // namespace
}  // namespace everstep::null_cuda

using namespace everstep::null_cuda;  // NOLINT(google-build-using-namespace): what follows has no namespace

extern "C" {

cudaError_t cudaMalloc(void** address, std::size_t bytes) {
  *address = addresses().allocate_gpu(here().gpu, bytes);
  if (*address == nullptr) return cudaErrorMemoryAllocation;
  ++here().counts.allocations;
  return cudaSuccess;
}

// The real one waits for the whole GPU.
cudaError_t cudaFree(void* address) {
  if (address == nullptr) return cudaSuccess;
  count_wait("cudaFree");
  end_all_work();
  addresses().release(address);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** address, std::size_t bytes, unsigned /*flags*/) {
  *address = addresses().allocate_pinned(bytes);
  if (*address == nullptr) return cudaErrorMemoryAllocation;
  ++here().counts.pinned_allocations;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* address) {
  if (address == nullptr) return cudaSuccess;
  count_wait("cudaFreeHost");
  end_all_work();
  addresses().release(address);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = static_cast<std::size_t>(kGpuBytes);
  *free = static_cast<std::size_t>(kGpuBytes - bytes_of(here().gpu).now);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  give_work(stream);
  if (!copy(to, from, bytes)) {
    count_wait("cudaMemcpyAsync with memory that is not pinned");
    end_work(stream);
  }
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/) {
  count_wait("cudaMemcpy");
  copy(to, from, bytes);
  end_work(nullptr);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* /*to*/, int /*value*/, std::size_t /*bytes*/, cudaStream_t stream) {
  give_work(stream);
  return cudaSuccess;
}

cudaError_t cudaMemset(void* /*to*/, int /*value*/, std::size_t /*bytes*/) {
  count_wait("cudaMemset");
  end_work(nullptr);
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  const AddressBook::Entry entry = addresses().at(address);
  *attributes = {};
  attributes->type = cudaMemoryTypeUnregistered;
  if (entry.where == Where::kGpu) attributes->type = cudaMemoryTypeDevice;
  if (entry.where == Where::kPinned) attributes->type = cudaMemoryTypeHost;
  attributes->device = entry.gpu;
  attributes->devicePointer = const_cast<void*>(address);
  attributes->hostPointer = const_cast<void*>(address);
  return cudaSuccess;
}

}  // extern "C"
