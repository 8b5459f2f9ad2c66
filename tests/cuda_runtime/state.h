#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "tests/cuda_runtime/null_cuda.h"
#include "tests/cuda_runtime/stream_work.h"

// What the calls of the runtime share. Threads may come from anywhere.
namespace everstep::null_cuda {

enum class Where : std::uint8_t { kGpu, kPinned, kPageable };

class AddressBook {
 public:
  void* allocate_gpu(int gpu, std::size_t bytes);  // nothing: there is not enough memory
  void* allocate_pinned(std::size_t bytes);
  void release(void* address);

  struct Entry {
    Where where = Where::kPageable;
    int gpu = 0;
    std::size_t bytes = 0;
    bool is_shared = false;
  };
  Entry at(const void* address);

  GpuBytes bytes_of(int gpu);
  void forget_most(int gpu);

 private:
  std::mutex mutex_;
  std::map<std::byte*, Entry> entries_;
  std::array<GpuBytes, kGpus> bytes_{};
};
AddressBook& addresses();

// Of this thread.
struct ThreadState {
  int gpu = 0;
  Counts counts;
  const char* last_wait = "";
  std::unordered_map<const void*, std::int64_t> launches;
};
ThreadState& here();

inline void count_wait(const char* call) {
  ++here().counts.waits;
  here().last_wait = call;
}

inline void count_launch(const void* function) {
  ++here().counts.launches;
  ++here().launches[function];
}

void name_function(const void* function, const char* name);
std::string name_of(const void* function);

// Streams and events, all under one lock.
struct Timeline {
  std::mutex mutex;
  Pace pace = Pace::kAtOnce;
  std::array<StreamWork, kGpus> default_streams;
  std::vector<StreamWork*> streams;
};
Timeline& timeline();

}  // namespace everstep::null_cuda
