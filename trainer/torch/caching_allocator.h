#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include <c10/core/Allocator.h>

namespace everstep::trainer {

// Host memory for tensors that keeps freed blocks for the next request of their size, because a training step asks for
// the same sizes again and again and the kernel would otherwise take the pages away and zero new ones each time.
//
// What it holds, used or not, stays below 17/16 of the most that was in use at once since it was made or told to
// forget, plus 16 MiB. Blocks are aligned for every vector instruction, and may be freed by any thread. It must outlive
// its blocks.
class CachingAllocator final : public c10::Allocator {
 public:
  // Throws std::bad_alloc.
  c10::DataPtr allocate(std::size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override;
  void copy_data(void* to, const void* from, std::size_t bytes) const override;

  // Frees all blocks that are not in use: what comes next asks for other sizes.
  void forget();

  std::size_t used_bytes() const;
  std::size_t held_bytes() const;

 private:
  // In front of every block, so that a deleter needs nothing but the block's address.
  struct Header {
    CachingAllocator* allocator;
    std::size_t size;  // with the header
  };

  static void free_block(void* block);
  Header* take_kept(std::size_t size);
  Header* allocate_new(std::size_t size);
  void keep(Header* header);
  void release_surplus(std::size_t room);
  void release_until(std::size_t kept_bytes);

  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<Header*>> kept_;  // by size
  std::size_t used_ = 0;
  std::size_t kept_bytes_ = 0;
  std::size_t most_used_ = 0;
};

}  // namespace everstep::trainer
