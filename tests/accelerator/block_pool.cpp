#include "tests/accelerator/block_pool.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "base/check.h"

namespace everstep::accelerator {

BlockPool::Taken BlockPool::take(std::size_t bytes, StreamId stream, const IsOver& is_over) {
  std::erase_if(waiting_, [&](const Waiting& each) {
    if (!std::all_of(each.outlasts.begin(), each.outlasts.end(), is_over)) return false;
    free_[{each.block.stream, each.block.bytes}].push_back(each.block.offset);
    return true;
  });
  const std::size_t size = std::max<std::size_t>(1, (bytes + granularity_ - 1) / granularity_) * granularity_;
  std::vector<std::size_t>& cached = free_[{stream, size}];
  const bool is_new = cached.empty();
  if (is_new) {
    if (size > size_ - next_) throw std::bad_alloc();
    cached.push_back(next_);
    next_ += size;
  }
  const Block block{cached.back(), size, stream, {}};
  cached.pop_back();
  blocks_[block.offset] = block;
  return {block, is_new};
}

BlockPool::Block* BlockPool::find(std::size_t offset) {
  const auto place = blocks_.find(offset);
  return place == blocks_.end() ? nullptr : &place->second;
}

BlockPool::Block* BlockPool::holder_of(std::size_t offset) {
  const auto next = blocks_.upper_bound(offset);
  if (next == blocks_.begin()) return nullptr;
  Block& block = std::prev(next)->second;
  return offset < block.offset + block.bytes ? &block : nullptr;
}

void BlockPool::give_back(std::size_t offset, std::vector<Moment> outlasts) {
  auto node = blocks_.extract(offset);
  EVERSTEP_CHECK(!node.empty(), "a block is given back once");
  waiting_.push_back({std::move(node.mapped()), std::move(outlasts)});
}

}  // namespace everstep::accelerator
