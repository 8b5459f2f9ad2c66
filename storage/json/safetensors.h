#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/file_system.h"
#include "storage/tensor_file.h"

namespace everstep::storage {

// Hugging Face's safetensors: eight bytes of length, a JSON header, the tensors' bytes.

// The bytes of the tensor at that index. They must stay as they are until the next one is asked for.
using TensorBytes = std::function<Result<std::span<const std::byte>>(std::size_t index)>;

// Writes and syncs one file, whose name is durable only after sync_directory. Tensors lie in the order given and are
// asked for one after the other, so that they need not all be in memory. float32 and bfloat16 only. `progress` (may be
// empty) is told the bytes written so far, and by returning false cancels (kCancelled). A failure leaves a file that is
// of no use.
Status write_safetensors(FileSystem& files, std::string_view path, const std::vector<TensorSpec>& tensors,
                         const TensorBytes& bytes, const std::function<bool(std::uint64_t bytes)>& progress = {});

struct SafetensorsFile {
  struct Entry {
    TensorSpec tensor;
    std::uint64_t offset = 0;  // in the file
  };
  std::vector<Entry> entries;  // offsets ascending

  const Entry* find(std::string_view name) const;
};

// What such a file holds. Safe for any bytes: a header of at most 16 MiB, names and shapes as check() of a TensorSpec
// allows, offsets that cover the rest of the file without a gap or overlap. Tensors of a type that is not ours are left
// out (integer buffers, say); float16 is refused. kInvalidArgument says what is wrong.
Result<SafetensorsFile> read_safetensors_header(const ReadableFile& file);

}  // namespace everstep::storage
