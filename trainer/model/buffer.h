#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace everstep::trainer {

// Bytes that stay where they are as long as somebody holds the Buffer: a tensor being sent, a posted receive, a stage's
// weights. Copies share the bytes. Which memory they lie in (host or device) is between those who made it and those who
// use it.
struct Buffer {
  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  std::size_t size = 0;

  bool empty() const { return size == 0; }

  // A part of it that keeps the whole alive.
  Buffer part(std::size_t offset, std::size_t bytes) const { return {owner, data + offset, bytes}; }

  template <typename T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data), size / sizeof(T)};
  }
};

// Host memory, aligned for every vector instruction: zeroed, or with whatever bytes it had before.
Buffer allocate_zeroed(std::size_t bytes);
Buffer allocate_scratch(std::size_t bytes);

// Copies the bytes; `target` is allocated only if it has another size.
void copy_into(Buffer& target, const Buffer& source);

}  // namespace everstep::trainer
