#include "trainer/torch/caching_allocator.h"

#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace everstep::trainer {
namespace {

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

TEST(CachingAllocator, HandsAFreedBlockOutAgain) {
  CachingAllocator allocator;
  const void* const first = allocator.allocate(kMebibyte).get();
  EXPECT_EQ(allocator.used_bytes(), 0U);
  EXPECT_GE(allocator.held_bytes(), kMebibyte);
  EXPECT_EQ(allocator.allocate(kMebibyte + 100).get(), first);
}

TEST(CachingAllocator, AlignsBlocksForVectors) {
  CachingAllocator allocator;
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{65}, std::size_t{5000}, kMebibyte}) {
    const c10::DataPtr block = allocator.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 64, 0U);
  }
  EXPECT_EQ(allocator.allocate(0).get(), nullptr);
}

TEST(CachingAllocator, HoldsLittleMoreThanWasEverInUseAtOnce) {
  CachingAllocator allocator;
  for (std::size_t size = 1; size <= 64; ++size) allocator.allocate(size * kMebibyte);  // freed at once
  EXPECT_LE(allocator.held_bytes(), (64 + 4 + 16 + 1) * kMebibyte);
}

TEST(CachingAllocator, ForgetsWhatNobodyUses) {
  CachingAllocator allocator;
  const c10::DataPtr used = allocator.allocate(kMebibyte);
  for (std::size_t size = 1; size <= 64; ++size) allocator.allocate(size * kMebibyte);
  allocator.forget();
  EXPECT_EQ(allocator.held_bytes(), allocator.used_bytes());
  for (std::size_t size = 1; size <= 32; ++size) allocator.allocate(size * kMebibyte);
  EXPECT_LE(allocator.held_bytes(), (1 + 32 + 3 + 16 + 1) * kMebibyte)
      << "64 MiB were in use before, and count no more";
}

TEST(CachingAllocator, TakesBlocksBackFromOtherThreads) {
  CachingAllocator allocator;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&allocator, block = allocator.allocate(kMebibyte)]() mutable {
      block.clear();
      for (std::size_t size = 1; size < 200; ++size) allocator.allocate(size * 64);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.used_bytes(), 0U);
}

}  // namespace
}  // namespace everstep::trainer
