// The calls of CUDA's runtime that tell about GPUs: eight of one model.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include <cuda_runtime_api.h>

#include "tests/cuda_runtime/state.h"

using everstep::null_cuda::here;
using everstep::null_cuda::kGpuBytes;
using everstep::null_cuda::kGpus;

namespace {

constexpr int kCudaVersion = 13000;

bool is_gpu(int number) { return number >= 0 && number < kGpus; }

// An A100 with 80 GB, as CUDA describes it.
cudaDeviceProp a100() {
  constexpr std::string_view kName = "A100 that does nothing";
  cudaDeviceProp gpu{};
  std::copy(kName.begin(), kName.end(), gpu.name);
  gpu.totalGlobalMem = static_cast<std::size_t>(kGpuBytes);
  gpu.sharedMemPerBlock = 49152;
  gpu.sharedMemPerBlockOptin = 166912;
  gpu.sharedMemPerMultiprocessor = 167936;
  gpu.regsPerBlock = 65536;
  gpu.regsPerMultiprocessor = 65536;
  gpu.warpSize = 32;
  gpu.maxThreadsPerBlock = 1024;
  gpu.maxThreadsPerMultiProcessor = 2048;
  gpu.maxBlocksPerMultiProcessor = 32;
  for (const int axis : {0, 1, 2}) gpu.maxThreadsDim[axis] = axis == 2 ? 64 : 1024;
  for (const int axis : {0, 1, 2}) gpu.maxGridSize[axis] = axis == 0 ? 2147483647 : 65535;
  gpu.major = 8;
  gpu.minor = 0;
  gpu.multiProcessorCount = 108;
  gpu.l2CacheSize = 40 << 20;
  gpu.textureAlignment = 512;
  gpu.unifiedAddressing = 1;
  gpu.concurrentKernels = 1;
  gpu.asyncEngineCount = 3;
  return gpu;
}

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = here().gpu;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (!is_gpu(device)) return cudaErrorInvalidDevice;
  here().gpu = device;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kCudaVersion;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!is_gpu(device)) return cudaErrorInvalidDevice;
  *properties = a100();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  const cudaDeviceProp gpu = a100();
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = gpu.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = gpu.minor;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = gpu.multiProcessorCount;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(gpu.sharedMemPerBlockOptin);
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(gpu.sharedMemPerBlock);
      break;
    case cudaDevAttrMaxGridDimX:
      *value = gpu.maxGridSize[0];
      break;
    case cudaDevAttrWarpSize:
      *value = gpu.warpSize;
      break;
    case cudaDevAttrMaxThreadsPerBlock:
      *value = gpu.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *value = gpu.maxThreadsPerMultiProcessor;
      break;
    default:
      return cudaErrorNotSupported;  // so that nobody reckons with a number that was made up
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int /*device*/, int /*peer*/) {
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", device);
  return cudaSuccess;
}

// LibTorch uses what the driver has beyond the runtime where it is there. Here it is not.
cudaError_t cudaGetDriverEntryPointByVersion(const char* /*name*/, void** function, unsigned /*version*/,
                                             unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  return cudaErrorSymbolNotFound;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t /*error*/) { return "refused by the CUDA runtime that does nothing"; }
const char* cudaGetErrorName(cudaError_t /*error*/) { return "nullCudaError"; }

}  // extern "C"
