#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace everstep::storage {

enum class ElementType : std::uint8_t {
  kFloat32,
  kBfloat16,  // HDF5 has no such type: stored as 16-bit unsigned integers under the attribute dtype = "bfloat16"
  kInt64,     // fixed-point sums
};

std::string_view to_string(ElementType type);  // "float32", "bfloat16", "int64"
std::optional<ElementType> parse_element_type(std::string_view text);
std::size_t bytes_of(ElementType type);

// One tensor under its global name. One '/' may divide a group from the name: "first_moment/wte.weight".
struct TensorSpec {
  std::string name;
  ElementType type = ElementType::kFloat32;
  std::vector<std::int64_t> shape;

  // Both CHECK that nothing overflows: call them for what check() has passed.
  std::uint64_t elements() const;
  std::uint64_t bytes() const { return elements() * bytes_of(type); }
  bool operator==(const TensorSpec&) const = default;
};

// Refuses names and shapes that no file may have: a name of 1 … 200 printable ASCII characters without '/' but the one
// above, none of the two sides empty or "." (HDF5's name for the group itself); at most 8 dimensions of 1 … 2^40, at
// most 2^40 bytes.
Status check(const TensorSpec& tensor);

// What a file says about itself besides its tensors, for people with h5dump and for detecting swapped files.
struct TensorFileAttributes {
  std::string job;
  std::string kind;  // "weights", "previous", "optimizer" or "gradients"
  std::int64_t block = 0;
  std::int64_t position = 0;
  std::int64_t version = 0;
  std::int64_t format = 1;

  bool operator==(const TensorFileAttributes&) const = default;
};

struct TensorFileSpec {
  TensorFileAttributes attributes;
  std::vector<TensorSpec> tensors;

  bool operator==(const TensorFileSpec&) const = default;
};

// Which bytes a file has where: pieces of metadata, and the tensors' own bytes at their offsets. Together they cover
// the file without overlap; what lies between is zero.
struct TensorFileLayout {
  struct Piece {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> metadata;         // offsets ascending
  std::vector<std::uint64_t> offsets;  // per tensor, as in the spec
  std::uint64_t size = 0;
};

// The format of a tensor file (HDF5, in storage/hdf5). It does no input or output: it says where bytes go, and finds
// them again. From any thread.
class TensorFormat {
 public:
  virtual ~TensorFormat() = default;

  virtual Result<TensorFileLayout> lay_out(const TensorFileSpec& spec) const = 0;

  // Where the tensors lie in a file, which must be exactly what the spec says: same names, types, shapes and
  // attributes, all contiguous, within the file and without overlap, nothing else. Safe for any bytes: kDataLoss with
  // one line that says what is wrong. Call it only with bytes whose digest was verified; this is the second line of
  // defence.
  virtual Result<std::vector<std::uint64_t>> find_tensors(std::span<const std::byte> file,
                                                          const TensorFileSpec& expected) const = 0;
};

}  // namespace everstep::storage
