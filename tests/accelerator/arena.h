#pragma once

#include <cstddef>
#include <cstdint>

namespace everstep::accelerator {

inline constexpr std::size_t kPage = 4096;

enum class Rights : std::uint8_t { kNone, kRead, kAll };

// Addresses for `bytes` of memory, mapped twice: everybody names it by the host's address, whose rights change;
// kernels reach the same bytes elsewhere and always. Pages cost nothing until they are touched.
class Arena {
 public:
  Arena(std::size_t bytes, Rights host_rights);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  bool holds(const void* address) const;
  std::byte* at(std::size_t offset) const { return host_ + offset; }
  std::size_t offset_of(const void* address) const { return static_cast<const std::byte*>(address) - host_; }
  std::byte* kernel_address(const void* address) const { return kernel_ + offset_of(address); }
  std::size_t size() const { return size_; }

  // Of the host, for whole pages. May be called by a signal handler.
  void set_rights(std::size_t first_byte, std::size_t bytes, Rights rights) const;

 private:
  std::size_t size_;
  std::byte* host_ = nullptr;
  std::byte* kernel_ = nullptr;
};

}  // namespace everstep::accelerator
