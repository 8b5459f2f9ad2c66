#include "tests/cuda_runtime/null_cuda.h"

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

namespace everstep::null_cuda {
namespace {

constexpr std::size_t kBytes = 4096;

void* gpu_memory() {
  void* address = nullptr;
  EXPECT_EQ(cudaMalloc(&address, kBytes), cudaSuccess);
  return address;
}

char* pinned_memory(std::size_t bytes = kBytes) {
  void* address = nullptr;
  EXPECT_EQ(cudaHostAlloc(&address, bytes, 0), cudaSuccess);
  return static_cast<char*>(address);
}

cudaStream_t new_stream() {
  cudaStream_t stream = nullptr;
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  return stream;
}

cudaEvent_t recorded_on(cudaStream_t stream) {
  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event, stream), cudaSuccess);
  return event;
}

std::int64_t waits_in(const std::function<void()>& calls) {
  const std::int64_t before = counts_of_this_thread().waits;
  calls();
  return counts_of_this_thread().waits - before;
}

TEST(NullCuda, HasGpusThatEachThreadChoosesFrom) {
  int count = 0;
  EXPECT_EQ(cudaGetDeviceCount(&count), cudaSuccess);
  EXPECT_EQ(count, kGpus);
  EXPECT_EQ(cudaSetDevice(kGpus), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaSetDevice(3), cudaSuccess);
  int current = -1;
  EXPECT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 3);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(NullCuda, GivesOutAsMuchMemoryAsAGpuHas) {
  constexpr auto kHalf = static_cast<std::size_t>(kGpuBytes / 2);
  const std::int64_t before = counts_of_this_thread().allocations;
  EXPECT_EQ(cudaSetDevice(1), cudaSuccess);
  std::vector<void*> halves(3);
  EXPECT_EQ(cudaMalloc(&halves[0], kHalf), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&halves[1], kHalf), cudaSuccess);
  EXPECT_EQ(cudaMalloc(&halves[2], kHalf), cudaErrorMemoryAllocation);
  EXPECT_EQ(bytes_of(1).now, kGpuBytes);
  EXPECT_EQ(cudaFree(halves[0]), cudaSuccess);
  EXPECT_EQ(cudaFree(halves[1]), cudaSuccess);
  EXPECT_EQ(bytes_of(1).now, 0);
  EXPECT_EQ(bytes_of(1).most, kGpuBytes);
  EXPECT_EQ(counts_of_this_thread().allocations - before, 2);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
}

TEST(NullCudaDeathTest, LetsNobodyTouchTheMemoryOfAGpu) {
  const auto* const address = static_cast<const volatile char*>(gpu_memory());
  EXPECT_DEATH({ (void)address[7]; }, "");
}

TEST(NullCuda, CopiesZerosFromAGpu) {
  char* const pinned = pinned_memory();
  std::memset(pinned, 1, kBytes);
  EXPECT_EQ(waits_in([&] { cudaMemcpyAsync(pinned, gpu_memory(), kBytes, cudaMemcpyDefault, new_stream()); }), 0);
  EXPECT_EQ(pinned[0], 0);
  EXPECT_EQ(pinned[kBytes - 1], 0);
}

TEST(NullCuda, SharesTheBytesOfLargePinnedBlocks) {
  char* const one = pinned_memory(kSharedPinnedBytes);
  char* const other = pinned_memory(3 * kSharedPinnedBytes);
  one[5] = 'x';
  EXPECT_EQ(other[5], 'x');
  one[5] = 0;
  char* const small = pinned_memory(kSharedPinnedBytes - 1);
  small[5] = 'x';
  EXPECT_EQ(one[5], 0);
}

TEST(NullCuda, CountsEveryCallThatWaits) {
  cudaStream_t stream = new_stream();
  cudaEvent_t event = recorded_on(stream);
  void* const gpu = gpu_memory();
  char* const pinned = pinned_memory();
  std::vector<char> pageable(kBytes);
  for (const auto& [call, name] : std::vector<std::pair<std::function<void()>, std::string>>{
           {[&] { cudaStreamSynchronize(stream); }, "cudaStreamSynchronize"},
           {[&] { cudaDeviceSynchronize(); }, "cudaDeviceSynchronize"},
           {[&] { cudaEventSynchronize(event); }, "cudaEventSynchronize"},
           {[&] { cudaMemcpy(pinned, gpu, kBytes, cudaMemcpyDefault); }, "cudaMemcpy"},
           {[&] { cudaMemset(gpu, 0, kBytes); }, "cudaMemset"},
           {[&] { cudaMemcpyAsync(pageable.data(), gpu, kBytes, cudaMemcpyDefault, stream); },
            "cudaMemcpyAsync with memory that is not pinned"},
           {[&] { cudaMemcpyAsync(gpu, pageable.data(), kBytes, cudaMemcpyDefault, stream); },
            "cudaMemcpyAsync with memory that is not pinned"},
           {[&] { cudaFree(gpu_memory()); }, "cudaFree"},
           {[&] { cudaFreeHost(pinned_memory()); }, "cudaFreeHost"}}) {
    EXPECT_EQ(waits_in(call), 1) << name;
    EXPECT_EQ(last_wait(), name);
  }
}

TEST(NullCuda, CountsNothingElseAsAWait) {
  cudaStream_t stream = new_stream();
  void* const gpu = gpu_memory();
  char* const pinned = pinned_memory();
  EXPECT_EQ(waits_in([&] {
              cudaMemcpyAsync(pinned, gpu, kBytes, cudaMemcpyDefault, stream);
              cudaMemcpyAsync(gpu, pinned, kBytes, cudaMemcpyDefault, stream);
              cudaMemsetAsync(gpu, 0, kBytes, stream);
              cudaEvent_t event = recorded_on(stream);
              cudaEventQuery(event);
              cudaStreamQuery(stream);
              cudaStreamWaitEvent(new_stream(), event, 0);
            }),
            0);
}

// One stream waits for another, and that for a third.
TEST(NullCuda, EndsWhatIsWaitedForAndAllBeforeIt) {
  set_pace(Pace::kWhenWaitedFor);
  cudaStream_t first = new_stream();
  cudaStream_t second = new_stream();
  cudaStream_t third = new_stream();
  void* const gpu = gpu_memory();
  const auto work = [&](cudaStream_t stream) {
    cudaMemsetAsync(gpu, 0, kBytes, stream);
    return recorded_on(stream);
  };
  cudaEvent_t of_third = work(third);
  cudaStreamWaitEvent(second, of_third, 0);
  cudaEvent_t of_second = work(second);
  cudaEvent_t later = work(third);
  cudaStreamWaitEvent(first, of_second, 0);
  cudaEvent_t of_first = work(first);
  for (cudaEvent_t event : {of_first, of_second, of_third, later}) {
    EXPECT_EQ(cudaEventQuery(event), cudaErrorNotReady);
  }
  EXPECT_EQ(cudaEventSynchronize(of_first), cudaSuccess);
  for (cudaEvent_t event : {of_first, of_second, of_third}) EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(later), cudaErrorNotReady);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(later), cudaSuccess);
  set_pace(Pace::kAtOnce);
  EXPECT_EQ(cudaEventQuery(work(first)), cudaSuccess);
}

}  // namespace
}  // namespace everstep::null_cuda
