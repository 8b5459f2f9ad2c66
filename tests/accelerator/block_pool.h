#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tests/accelerator/clock.h"

namespace everstep::accelerator {

// Which bytes of an arena are given to whom, by offset: the bookkeeping of a caching allocator as LibTorch's is. A
// freed block serves the stream that it was allocated for, and no other; at once, or when all that it has to outlast is
// over. Not for threads at once.
class BlockPool {
 public:
  using IsOver = std::function<bool(const Moment&)>;

  struct Block {
    std::size_t offset = 0;
    std::size_t bytes = 0;         // rounded up
    StreamId stream = 0;           // that it serves
    std::vector<StreamId> guests;  // other streams that work on it
  };

  BlockPool(std::size_t size, std::size_t granularity) : size_(size), granularity_(granularity) {}

  struct Taken {
    Block block;
    bool is_new = false;  // the cache had none
  };

  // Throws std::bad_alloc if the arena is used up.
  Taken take(std::size_t bytes, StreamId stream, const IsOver& is_over);

  // Nothing if it is not allocated; whole blocks are named by their first byte.
  Block* find(std::size_t offset);

  // The block that holds this byte.
  Block* holder_of(std::size_t offset);

  // Bytes that were ever in use: what a caching allocator keeps.
  std::size_t taken() const { return next_; }

  // The block may serve again when all of `outlasts` is over.
  void give_back(std::size_t offset, std::vector<Moment> outlasts);

 private:
  struct Waiting {
    Block block;
    std::vector<Moment> outlasts;
  };

  std::size_t size_;
  std::size_t granularity_;
  std::size_t next_ = 0;
  std::map<std::size_t, Block> blocks_;  // in use, by offset
  std::map<std::pair<StreamId, std::size_t>, std::vector<std::size_t>> free_;
  std::vector<Waiting> waiting_;
};

}  // namespace everstep::accelerator
