#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>

namespace everstep::trainer {

static_assert(std::endian::native == std::endian::little, "token files are little-endian and read as they are");

// The number stored at `offset`, aligned or not; it must lie inside `bytes`.
template <typename Number>
Number load(std::span<const std::byte> bytes, std::size_t offset) {
  Number number{};
  std::memcpy(&number, bytes.data() + offset, sizeof number);
  return number;
}

}  // namespace everstep::trainer
