#pragma once

#include <cstdint>
#include <map>
#include <string>

// A CUDA runtime and a cuBLAS that do nothing, in a library that is linked before NVIDIA's: LibTorch's real GPU code
// runs on the host, with its dispatch, argument checks and allocators, and what it launches is counted and dropped. The
// GPUs are as many A100s with 80 GiB. Their memory has addresses and no bytes: a touch of the host is a fault. A copy
// to the host brings zeros. What is not of this library is NVIDIA's, which fails without a GPU.
namespace everstep::null_cuda {

inline constexpr int kGpus = 8;
inline constexpr std::int64_t kGpuBytes = std::int64_t{80} << 30;

// Pinned blocks from this size on share their bytes, so that the staging of large models needs no memory: they hold
// zeros as long as nobody writes something else.
inline constexpr std::size_t kSharedPinnedBytes = std::size_t{1} << 20;

// How far the GPUs are behind the host. Of the process.
enum class Pace : std::uint8_t {
  kAtOnce,         // all is over as soon as it is launched
  kWhenWaitedFor,  // nothing is over before somebody waits for it, or for something after it
};
void set_pace(Pace pace);

struct Counts {
  std::int64_t launches = 0;            // of kernels, cuBLAS's included
  std::int64_t waits = 0;               // calls in which the host waits for a GPU, or may
  std::int64_t allocations = 0;         // cudaMalloc
  std::int64_t pinned_allocations = 0;  // cudaHostAlloc
};
Counts counts_of_this_thread();

// The call in which this thread waited last.
std::string last_wait();

// What this thread has launched since it asked last, by the kernels' mangled names.
std::map<std::string, std::int64_t> take_launches();

// What cudaMalloc has given out of a GPU's memory, and the most that was out at once.
struct GpuBytes {
  std::int64_t now = 0;
  std::int64_t most = 0;
};
GpuBytes bytes_of(int gpu);
void forget_most(int gpu);

}  // namespace everstep::null_cuda
