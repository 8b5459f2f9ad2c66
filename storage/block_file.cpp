#include "storage/block_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"

namespace everstep::storage {
namespace {

// Bytes are hashed and written, or read and hashed, in pieces that stay in the processor's cache between the two.
constexpr std::size_t kPiece = std::size_t{1} << 18;

struct Segment {
  std::uint64_t offset = 0;
  std::span<const std::byte> bytes;
};

// Metadata and tensors as they follow each other in the file.
std::vector<Segment> segments_of(const TensorFileLayout& layout, const BlockState& state) {
  EVERSTEP_CHECK(layout.offsets.size() == state.tensors.size(), "a layout has an offset for each tensor");
  std::vector<Segment> segments;
  for (const auto& piece : layout.metadata) segments.push_back({piece.offset, piece.bytes});
  for (std::size_t i = 0; i < state.tensors.size(); ++i) segments.push_back({layout.offsets[i], state.tensors[i]});
  std::sort(segments.begin(), segments.end(), [](const Segment& a, const Segment& b) { return a.offset < b.offset; });
  return segments;
}

// A file that grows while its hash does.
class HashedFile {
 public:
  HashedFile(WritableFile& file, const Hashing& hashing, const std::function<bool()>& cancelled)
      : file_(file), hasher_(hashing.sha256()), cancelled_(cancelled) {}

  Status append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (cancelled_ && cancelled_()) return Error{ErrorCode::kCancelled, "the save was cancelled", {}};
      const auto piece = bytes.first(std::min(bytes.size(), kPiece));
      hasher_->add(piece);
      EVERSTEP_TRY(file_.write(piece));
      size_ += piece.size();
      bytes = bytes.subspan(piece.size());
    }
    return {};
  }

  Status append_zeros_up_to(std::uint64_t offset) {
    static constexpr std::array<std::byte, 4096> kZeros{};
    EVERSTEP_CHECK(offset >= size_, "the parts of a layout do not overlap");
    while (size_ < offset) {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(offset - size_, kZeros.size()));
      EVERSTEP_TRY(append(std::span(kZeros).first(count)));
    }
    return {};
  }

  std::uint64_t size() const { return size_; }
  Digest finish() { return hasher_->finish(); }

 private:
  WritableFile& file_;
  std::unique_ptr<Hasher> hasher_;
  const std::function<bool()>& cancelled_;
  std::uint64_t size_ = 0;
};

Error damaged(const std::string& path, const std::string& why) {
  return {ErrorCode::kDataLoss, "the file '" + path + "' is damaged: " + why,
          "use an older checkpoint, or put back a copy of this file"};
}

// Opens the file if it has the size that the record says.
Result<std::unique_ptr<ReadableFile>> open_recorded(const FileSystem& files, const std::string& path,
                                                    const FileRecord& record) {
  auto file = files.open(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return damaged(path, "it is missing");
  if (file && (*file)->size() != record.size) {
    return damaged(
        path, "it has " + std::to_string((*file)->size()) + " bytes, the manifest says " + std::to_string(record.size));
  }
  return file;
}

Status check_digest(const std::string& path, const FileRecord& record, const Digest& digest) {
  if (equal_digests(digest, record.sha256)) return {};
  return damaged(path, "its SHA-256 is " + to_string(digest) + ", the manifest says " + to_string(record.sha256));
}

}  // namespace

Result<FileRecord> write_block_file(const FilePorts& ports, const std::string& job, std::uint64_t lineage,
                                    const BlockState& state, const std::function<bool()>& cancelled) {
  FileRecord record = state.record;
  EVERSTEP_CHECK(state.tensors.size() == record.tensors.size(), "a block's state has bytes for each tensor");
  for (std::size_t i = 0; i < state.tensors.size(); ++i) {
    EVERSTEP_CHECK(state.tensors[i].size() == record.tensors[i].bytes(),
                   "tensor and bytes fit: " + record.tensors[i].name);
  }
  const auto layout = ports.tensors.lay_out(spec_of(job, record));
  if (!layout) return layout.error();

  auto file = ports.files.create(path_of(lineage, record));
  if (!file) return file.error();
  HashedFile hashed(**file, ports.hashing, cancelled);
  for (const Segment& segment : segments_of(*layout, state)) {
    EVERSTEP_TRY(hashed.append_zeros_up_to(segment.offset));
    EVERSTEP_TRY(hashed.append(segment.bytes));
  }
  EVERSTEP_TRY(hashed.append_zeros_up_to(layout->size));
  EVERSTEP_TRY((*file)->sync());
  record.size = hashed.size();
  record.sha256 = hashed.finish();
  return record;
}

std::span<const std::byte> LoadedBlockFile::tensor(const FileRecord& record, int index) const {
  const auto i = static_cast<std::size_t>(index);
  return std::span(bytes.get(), size).subspan(offsets.at(i), record.tensors.at(i).bytes());
}

Result<LoadedBlockFile> load_block_file(const FilePorts& ports, const std::string& job, std::uint64_t lineage,
                                        const FileRecord& record) {
  const std::string path = path_of(lineage, record);
  const auto file = open_recorded(ports.files, path, record);
  if (!file) return file.error();

  LoadedBlockFile loaded;
  loaded.size = static_cast<std::size_t>(record.size);
  loaded.bytes = std::make_unique_for_overwrite<std::byte[]>(loaded.size);
  const std::span whole(loaded.bytes.get(), loaded.size);
  const auto hasher = ports.hashing.sha256();
  for (std::size_t offset = 0; offset < whole.size(); offset += kPiece) {
    const auto piece = whole.subspan(offset, std::min(kPiece, whole.size() - offset));
    EVERSTEP_TRY((*file)->read(offset, piece));
    hasher->add(piece);
  }
  EVERSTEP_TRY(check_digest(path, record, hasher->finish()));

  auto offsets = ports.tensors.find_tensors(whole, spec_of(job, record));
  if (!offsets) return damaged(path, offsets.error().message);
  loaded.offsets = std::move(*offsets);
  EVERSTEP_CHECK(loaded.offsets.size() == record.tensors.size(), "a format finds all tensors or fails");
  return loaded;
}

Status verify_block_file(const FilePorts& ports, std::uint64_t lineage, const FileRecord& record) {
  const std::string path = path_of(lineage, record);
  const auto file = open_recorded(ports.files, path, record);
  if (!file) return file.error();
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPiece);
  const auto hasher = ports.hashing.sha256();
  for (std::uint64_t offset = 0; offset < record.size; offset += kPiece) {
    const std::span piece(buffer.get(),
                          static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, record.size - offset)));
    EVERSTEP_TRY((*file)->read(offset, piece));
    hasher->add(piece);
  }
  return check_digest(path, record, hasher->finish());
}

}  // namespace everstep::storage
