#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// Reads the part of HDF5's file format that lay_out makes: a superblock of version 2 and object headers of version 2,
// every one with a checksum. Own code instead of libhdf5, because known files crash libhdf5 1.10 and other files make
// it read elsewhere. No byte is believed before it is checked, nothing is allocated by a number in the file, and each
// byte of the file belongs to one thing only, so that no chain of addresses can go on without end.
namespace everstep::storage {

constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

// "the tensor file …": kDataLoss, one line.
Error damaged(const std::string& what);

// Takes numbers from the front. Beyond the end they are 0 and `ok` is false.
class Hdf5Cursor final {
 public:
  explicit Hdf5Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t size);  // little-endian, of at most 8 bytes
  std::span<const std::byte> take(std::uint64_t size);
  std::string_view text(std::uint64_t size);

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

enum class Hdf5MessageType : std::uint8_t {
  kNil = 0x00,
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kFillValue = 0x05,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kGroupInfo = 0x0a,
  kFilters = 0x0b,
  kAttribute = 0x0c,
  kContinuation = 0x10,
  kAttributeInfo = 0x15,
};

struct Hdf5Message {
  Hdf5MessageType type = Hdf5MessageType::kNil;
  std::span<const std::byte> body;
};

class Hdf5FileReader final {
 public:
  explicit Hdf5FileReader(std::span<const std::byte> file) : file_(file) {}

  // Where the root group's header lies.
  Result<std::uint64_t> read_superblock();

  // All messages of the object at the address but empty ones; `object` names it in errors.
  Result<std::vector<Hdf5Message>> read_object(std::uint64_t address, const std::string& object);

  // The bytes, which must lie in the file and may not have been taken before.
  Result<std::span<const std::byte>> take(std::uint64_t offset, std::uint64_t size, const std::string& object);

 private:
  struct Chunk {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };
  Result<std::vector<Chunk>> read_messages(std::span<const std::byte> chunk, const std::string& object,
                                           std::vector<Hdf5Message>& messages);
  Result<std::span<const std::byte>> read_first_chunk(std::uint64_t address, const std::string& object);
  Result<std::span<const std::byte>> read_next_chunk(const Chunk& chunk, const std::string& object);

  std::span<const std::byte> file_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // end by beginning
};

// Bob Jenkins' lookup3, the checksum of HDF5's metadata.
std::uint32_t hdf5_checksum(std::span<const std::byte> bytes);

}  // namespace everstep::storage
