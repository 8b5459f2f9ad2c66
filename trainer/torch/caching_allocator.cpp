#include "trainer/torch/caching_allocator.h"

#include <algorithm>
#include <new>

namespace everstep::trainer {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kSlack = std::size_t{16} << 20;

// Sizes that differ little share a block. Whole pages for large ones: the rounding is lost memory.
std::size_t rounded(std::size_t bytes) {
  const std::size_t unit = bytes < kPage ? kAlignment : kPage;
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

c10::DataPtr CachingAllocator::allocate(std::size_t bytes) {
  const c10::Device host(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, &free_block, host};
  const std::size_t size = rounded(bytes + kAlignment);
  const std::lock_guard lock(mutex_);
  Header* header = take_kept(size);
  if (header == nullptr) header = allocate_new(size);
  used_ += size;
  most_used_ = std::max(most_used_, used_);
  void* const block = reinterpret_cast<std::byte*>(header) + kAlignment;
  return {block, block, &free_block, host};
}

CachingAllocator::Header* CachingAllocator::take_kept(std::size_t size) {
  const auto place = kept_.find(size);
  if (place == kept_.end() || place->second.empty()) return nullptr;
  Header* const header = place->second.back();
  place->second.pop_back();
  kept_bytes_ -= size;
  return header;
}

CachingAllocator::Header* CachingAllocator::allocate_new(std::size_t size) {
  release_surplus(size);
  return new (::operator new (size, std::align_val_t{kAlignment})) Header{this, size};
}

// So that `room` more bytes may be held.
void CachingAllocator::release_surplus(std::size_t room) {
  const std::size_t most = std::max(most_used_, used_ + room);
  release_until(most + most / 16 + kSlack - used_ - room);
}

// Large blocks go first.
void CachingAllocator::release_until(std::size_t kept_bytes) {
  for (auto blocks = kept_.rbegin(); blocks != kept_.rend() && kept_bytes_ > kept_bytes; ++blocks) {
    while (!blocks->second.empty() && kept_bytes_ > kept_bytes) {
      ::operator delete (take_kept(blocks->first), std::align_val_t{kAlignment});
    }
  }
}

void CachingAllocator::forget() {
  const std::lock_guard lock(mutex_);
  release_until(0);
  kept_.clear();
  most_used_ = used_;
}

void CachingAllocator::keep(Header* header) {
  const std::lock_guard lock(mutex_);
  used_ -= header->size;
  kept_bytes_ += header->size;
  kept_[header->size].push_back(header);
}

void CachingAllocator::free_block(void* block) {
  if (block == nullptr) return;
  auto* const header = reinterpret_cast<Header*>(static_cast<std::byte*>(block) - kAlignment);
  header->allocator->keep(header);
}

c10::DeleterFnPtr CachingAllocator::raw_deleter() const { return &free_block; }

void CachingAllocator::copy_data(void* to, const void* from, std::size_t bytes) const {
  default_copy_data(to, from, bytes);
}

std::size_t CachingAllocator::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

std::size_t CachingAllocator::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_ + kept_bytes_;
}

}  // namespace everstep::trainer
