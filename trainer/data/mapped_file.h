#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace everstep::trainer {

// A file's bytes, read-only, brought into memory page by page as they are used: a data set may be larger than memory,
// and all workers of a host share its pages. The file must not be cut short while it is mapped.
class MappedFile {
 public:
  // kNotFound for a missing file; kInvalidArgument for an empty one, a directory, or one that may not be read.
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace everstep::trainer
