#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "storage/tensor_file.h"

namespace everstep::storage {

// The simplest tensor format: a line that spells the spec, then the tensors, each at a multiple of 64, and an end mark.
// There are gaps and metadata on both sides of the tensors, as in HDF5.
class FlatTensorFormat final : public TensorFormat {
 public:
  Result<TensorFileLayout> lay_out(const TensorFileSpec& spec) const override {
    for (const TensorSpec& tensor : spec.tensors) EVERSTEP_TRY(check(tensor));
    TensorFileLayout layout;
    layout.metadata.push_back({0, bytes_of_text(line_of(spec))});
    std::uint64_t end = layout.metadata[0].bytes.size();
    for (const TensorSpec& tensor : spec.tensors) {
      layout.offsets.push_back((end + 63) / 64 * 64);
      end = layout.offsets.back() + tensor.bytes();
    }
    layout.metadata.push_back({end, bytes_of_text("end")});
    layout.size = end + 3 + 5;  // five zeros at the end
    return layout;
  }

  Result<std::vector<std::uint64_t>> find_tensors(std::span<const std::byte> file,
                                                  const TensorFileSpec& expected) const override {
    const std::string line = line_of(expected);
    auto layout = lay_out(expected);
    if (!layout) return layout.error();
    if (file.size() != layout->size || std::memcmp(file.data(), line.data(), line.size()) != 0) {
      return Error{ErrorCode::kDataLoss, "it is not the file of " + line, {}};
    }
    return std::move(layout->offsets);
  }

 private:
  static std::vector<std::byte> bytes_of_text(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  static std::string line_of(const TensorFileSpec& spec) {
    const TensorFileAttributes& about = spec.attributes;
    std::string line = about.job + " " + about.kind;
    for (const std::int64_t number : {about.block, about.position, about.version, about.format}) {
      line += " " + std::to_string(number);
    }
    for (const TensorSpec& tensor : spec.tensors) {
      line += " " + tensor.name + ":" + std::string(to_string(tensor.type));
      for (const std::int64_t dimension : tensor.shape) line += "x" + std::to_string(dimension);
    }
    return line + "\n";
  }
};

}  // namespace everstep::storage
