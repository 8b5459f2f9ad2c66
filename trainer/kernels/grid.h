#pragma once

#include "trainer/kernels/host_device.h"

namespace everstep::trainer::kernels {

// How kernels are launched: blocks of so many threads, and no more blocks than keep a large GPU busy.
inline constexpr int kThreads = 256;
inline constexpr std::int64_t kMostBlocks = 2048;

constexpr std::int64_t blocks_for(std::int64_t items, std::int64_t items_per_block = kThreads) {
  const std::int64_t wanted = (items + items_per_block - 1) / items_per_block;
  return wanted < 1 ? 1 : wanted > kMostBlocks ? kMostBlocks : wanted;
}

// Where a thread stands in the grid of a launch.
struct Seat {
  std::int64_t block = 0;
  std::int64_t blocks = 1;
  int thread = 0;
  int threads = 1;
};

// Calls work(i) for those i of [0, count) that are this thread's. All threads of a grid together do each once.
template <typename Work>
EVERSTEP_HOST_DEVICE void walk(const Seat& seat, std::int64_t count, const Work& work) {
  const std::int64_t stride = seat.blocks * seat.threads;
  for (std::int64_t i = seat.block * seat.threads + seat.thread; i < count; i += stride) work(i);
}

// The same; returns whether any of its calls did.
template <typename Work>
EVERSTEP_HOST_DEVICE bool walk_any(const Seat& seat, std::int64_t count, const Work& work) {
  const std::int64_t stride = seat.blocks * seat.threads;
  bool any = false;
  for (std::int64_t i = seat.block * seat.threads + seat.thread; i < count; i += stride) any = work(i) || any;
  return any;
}

}  // namespace everstep::trainer::kernels
