// The calls of CUDA's runtime that launch kernels, and what nvcc's code calls before main().
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/cuda_runtime/state.h"
#include "tests/cuda_runtime/streams.h"

namespace {

struct Launch {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

thread_local std::vector<Launch> pending_launches;

cudaError_t drop(const void* function, cudaStream_t stream) {
  everstep::null_cuda::count_launch(function);
  everstep::null_cuda::give_work(stream);
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaLaunchKernel(const void* function, dim3 /*grid*/, dim3 /*block*/, void** /*arguments*/,
                             std::size_t /*shared_bytes*/, cudaStream_t stream) {
  return drop(function, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** /*arguments*/) {
  return drop(function, config->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* /*function*/) {
  *attributes = {};
  attributes->maxThreadsPerBlock = 1024;
  attributes->numRegs = 32;
  attributes->ptxVersion = 80;
  attributes->binaryVersion = 80;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* /*function*/, cudaFuncAttribute /*attribute*/, int /*value*/) {
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* /*function*/,
                                                                   int /*block_size*/, std::size_t /*shared_bytes*/,
                                                                   unsigned /*flags*/) {
  *blocks = 4;
  return cudaSuccess;
}

// ---- no public header has these ----
// NOLINTBEGIN(readability-identifier-naming): nvcc calls them so

cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 /*grid*/, dim3 /*block*/, void** /*arguments*/,
                               std::size_t /*shared_bytes*/, cudaStream_t stream) {
  return drop(reinterpret_cast<const void*>(kernel), stream);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream) {
  pending_launches.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes, void* stream) {
  const Launch launch = pending_launches.back();
  pending_launches.pop_back();
  *grid = launch.grid;
  *block = launch.block;
  *shared_bytes = launch.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = launch.stream;
  return cudaSuccess;
}

void** __cudaRegisterFatBinary(void* /*binary*/) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}

void __cudaRegisterFunction(void** /*handle*/, const char* function, char* /*device_function*/, const char* name,
                            int /*thread_limit*/, void* /*thread_id*/, void* /*block_id*/, void* /*block*/,
                            void* /*grid*/, int* /*warp_size*/) {
  everstep::null_cuda::name_function(function, name);
}

void __cudaRegisterVar(void** /*handle*/, char* /*variable*/, char* /*address*/, const char* /*name*/, int /*external*/,
                       std::size_t /*bytes*/, int /*constant*/, int /*global*/) {}

// NOLINTEND(readability-identifier-naming)

}  // extern "C"
