#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/file_system.h"
#include "storage/tensor_file.h"

namespace everstep::storage {

// Hugging Face's safetensors: eight bytes of length, a JSON header, the tensors' bytes.

// Writes and syncs one file; the spans are parallel to the specs. float32 and bfloat16 only.
Status write_safetensors(FileSystem& files, std::string_view path, const std::vector<TensorSpec>& tensors,
                         const std::vector<std::span<const std::byte>>& bytes,
                         const std::function<void(std::uint64_t bytes)>& progress = {});

// What such a file holds. Safe for any bytes: bounded header, offsets inside the file and without overlap.
struct SafetensorsFile {
  struct Entry {
    TensorSpec tensor;
    std::uint64_t offset = 0;  // in the file
  };
  std::vector<Entry> entries;
};

Result<SafetensorsFile> read_safetensors_header(const ReadableFile& file);

}  // namespace everstep::storage
