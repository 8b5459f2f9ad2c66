#include "launcher/job/data_digest.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <vector>

namespace everstep::launcher {
namespace {

constexpr std::uint64_t kSampleBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kSamples = 64;

std::vector<std::string> files_at(const std::string& path) {
  const bool has_extension = path.ends_with(".bin") || path.ends_with(".idx");
  const std::string stem = has_extension ? path.substr(0, path.size() - 4) : path;
  std::vector<std::string> files;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored) && !has_extension) return {path};
  for (const char* extension : {".bin", ".idx"}) {
    if (std::filesystem::is_regular_file(stem + extension, ignored)) files.push_back(stem + extension);
  }
  return files;
}

// Start of each sample, ascending, the first at the start and the last at the end of the file. Those of a file below
// 64 MiB cover it and may overlap.
std::vector<std::uint64_t> sample_offsets(std::uint64_t size) {
  const std::uint64_t count = std::clamp<std::uint64_t>((size + kSampleBytes - 1) / kSampleBytes, 1, kSamples);
  std::vector<std::uint64_t> offsets;
  const std::uint64_t room = size - std::min(size, kSampleBytes);
  // room * i / gaps, without a product that could overflow.
  const std::uint64_t gaps = std::max<std::uint64_t>(count - 1, 1);
  for (std::uint64_t i = 0; i < count; ++i) offsets.push_back(room / gaps * i + room % gaps * i / gaps);
  return offsets;
}

Status add_file(const std::string& path, storage::Hasher& hasher, std::uint64_t& total) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const auto end = file.tellg();
  if (end < 0) return not_found("cannot read " + path);
  const auto size = static_cast<std::uint64_t>(end);
  total += size;
  hasher.add(std::as_bytes(std::span(&size, 1)));
  std::vector<char> sample(std::min(size, kSampleBytes));
  for (const std::uint64_t offset : sample_offsets(size)) {
    file.seekg(static_cast<std::streamoff>(offset));
    if (!file.read(sample.data(), static_cast<std::streamsize>(sample.size()))) {
      return not_found("cannot read " + path);
    }
    hasher.add(std::as_bytes(std::span(sample)));
  }
  return {};
}

}  // namespace

Result<std::string> data_digest(const std::string& path, const storage::Hashing& hashing) {
  const std::vector<std::string> files = files_at(path);
  if (files.empty()) {
    return not_found("there is no data at " + path, "--data=PATH says where this host has the job's data");
  }
  const auto hasher = hashing.sha256();
  std::uint64_t size = 0;
  for (const std::string& file : files) EVERSTEP_TRY(add_file(file, *hasher, size));
  return std::to_string(size) + "-" + to_string(hasher->finish());
}

}  // namespace everstep::launcher
