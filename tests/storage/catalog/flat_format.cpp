#include "tests/storage/catalog/flat_format.h"

#include <algorithm>
#include <span>
#include <string>

namespace everstep::storage {
namespace {

std::string header_of(const TensorFileSpec& spec) {
  const TensorFileAttributes& said = spec.attributes;
  std::string text = said.job + " " + said.kind;
  for (const std::int64_t number : {said.block, said.position, said.version, said.format}) {
    text += " " + std::to_string(number);
  }
  for (const TensorSpec& tensor : spec.tensors) text += " " + tensor.name + ":" + std::to_string(tensor.bytes());
  return text + "\n";
}

class FlatFormat final : public TensorFormat {
 public:
  Result<TensorFileLayout> lay_out(const TensorFileSpec& spec) const override {
    const std::string header = header_of(spec);
    const auto bytes = std::as_bytes(std::span(header));
    TensorFileLayout layout;
    layout.metadata.push_back({0, {bytes.begin(), bytes.end()}});
    layout.size = header.size();
    for (const TensorSpec& tensor : spec.tensors) {
      layout.offsets.push_back(layout.size);
      layout.size += tensor.bytes();
    }
    return layout;
  }

  Result<std::vector<std::uint64_t>> find_tensors(std::span<const std::byte> file,
                                                  const TensorFileSpec& expected) const override {
    const auto layout = lay_out(expected);
    const auto& header = layout->metadata.front().bytes;
    if (file.size() != layout->size || !std::equal(header.begin(), header.end(), file.begin())) {
      return Error{ErrorCode::kDataLoss, "the file describes something else", ""};
    }
    return layout->offsets;
  }
};

}  // namespace

std::unique_ptr<TensorFormat> make_flat_format() { return std::make_unique<FlatFormat>(); }

}  // namespace everstep::storage
