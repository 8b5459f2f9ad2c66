#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <hdf5.h>

namespace everstep::storage {

// What libhdf5 writes to a file that exists nowhere. Memory for the pages it touches only, so tensors that are
// allocated but never written cost nothing. What was not written reads as zero.
class Hdf5Recording final {
 public:
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

  // The bytes of [begin, end) from the first to the last that is not zero, and where they begin.
  struct Extent {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  Extent extent(std::uint64_t begin, std::uint64_t end) const;

 private:
  static constexpr std::uint64_t kPage = 4096;

  std::map<std::uint64_t, std::array<std::byte, kPage>> pages_;  // by number
};

// Makes libhdf5 write to the recording whatever file is created with these access properties. False when it refuses.
bool record_into(std::shared_ptr<Hdf5Recording> recording, hid_t access_properties);

}  // namespace everstep::storage
