#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "storage/json/safetensors.h"
#include "tests/storage/fuzz/fuzz_targets.h"

namespace everstep::storage {
namespace {

class FileInMemory final : public ReadableFile {
 public:
  explicit FileInMemory(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> bytes) const override {
    EVERSTEP_CHECK(offset <= bytes_.size() && bytes.size() <= bytes_.size() - offset, "a reader stays in the file");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), bytes.begin());
    return {};
  }

 private:
  std::span<const std::byte> bytes_;
};

std::string with_length(const std::string& header, std::size_t tensor_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> (8 * i));
  return file + header + std::string(tensor_bytes, 'x');
}

}  // namespace

void fuzz_safetensors(std::span<const std::byte> input) {
  const auto file = read_safetensors_header(FileInMemory(input));
  if (!file) return;
  std::uint64_t end = 0;
  for (const SafetensorsFile::Entry& entry : file->entries) {
    EVERSTEP_CHECK(check(entry.tensor).ok(), "every tensor is one that check() passes");
    EVERSTEP_CHECK(entry.offset >= end && entry.tensor.bytes() <= input.size() - entry.offset, "tensors lie apart");
    end = entry.offset + entry.tensor.bytes();
  }
}

std::vector<std::string> safetensors_seeds() {
  return {
      with_length("{}", 0),
      with_length(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}})", 24),
      with_length(R"({"__metadata__":{"format":"pt"},"h.0.w":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},)"
                  R"("b":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}   )",
                  14),
      with_length(R"({"a":{"dtype":"F16","shape":[1099511627776,8],"data_offsets":[0,18446744073709551615]}})", 8),
  };
}

}  // namespace everstep::storage
