#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace everstep::trainer {

// Bytes that stay where they are as long as somebody holds the Buffer: a tensor being sent, a posted receive, a stage's
// weights. Copies share the bytes. Only what lies on the host may be read and written through `data`.
struct Buffer {
  enum class Place : std::uint8_t {
    kHost,
    kPinned,  // of the host, too, and a device's copies reach it: see DeviceMemory
    kDevice,
  };

  std::shared_ptr<void> owner;
  std::byte* data = nullptr;
  std::size_t size = 0;
  Place place = Place::kHost;

  bool empty() const { return size == 0; }
  bool on_device() const { return place == Place::kDevice; }

  // A part of it that keeps the whole alive.
  Buffer part(std::size_t offset, std::size_t bytes) const { return {owner, data + offset, bytes, place}; }

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
