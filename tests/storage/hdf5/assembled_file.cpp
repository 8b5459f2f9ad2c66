#include "tests/storage/hdf5/assembled_file.h"

#include <algorithm>

#include "base/check.h"
#include "storage/hdf5/hdf5_format.h"

namespace everstep::storage {
namespace {

class Canvas final {
 public:
  explicit Canvas(std::uint64_t size) : bytes_(size), painted_(size) {}

  void paint(std::uint64_t offset, std::span<const std::byte> part) {
    EVERSTEP_CHECK(offset + part.size() <= bytes_.size(), "a part lies in the file");
    for (std::size_t i = 0; i < part.size(); ++i) {
      EVERSTEP_CHECK(!painted_[offset + i], "no two parts of a layout overlap");
      painted_[offset + i] = true;
      bytes_[offset + i] = part[i];
    }
  }
  std::vector<std::byte> done() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
  std::vector<bool> painted_;
};

}  // namespace

std::vector<std::byte> tensor_bytes(const TensorFileSpec& spec, std::size_t tensor) {
  std::vector<std::byte> bytes(spec.tensors[tensor].bytes());
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(17 * tensor + 3 * i + i / 251);
  return bytes;
}

std::vector<std::byte> assemble(const TensorFileSpec& spec, const TensorFileLayout& layout) {
  Canvas canvas(layout.size);
  for (const TensorFileLayout::Piece& piece : layout.metadata) canvas.paint(piece.offset, piece.bytes);
  for (std::size_t i = 0; i < spec.tensors.size(); ++i) canvas.paint(layout.offsets[i], tensor_bytes(spec, i));
  return canvas.done();
}

std::vector<std::byte> make_tensor_file(const TensorFileSpec& spec) {
  return assemble(spec, make_hdf5_format()->lay_out(spec).value());
}

TensorFileSpec small_spec() {
  return {{"job-a", "optimizer", 3, 128, 7, 1},
          {{"wte.weight", ElementType::kFloat32, {5, 3}},
           {"first_moment/wte.weight", ElementType::kBfloat16, {7}},
           {"sums", ElementType::kInt64, {2, 1, 2}},
           {"scale", ElementType::kFloat32, {}}}};
}

}  // namespace everstep::storage
