#include "storage/hdf5/hdf5_header.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace everstep::storage {
namespace {

constexpr std::string_view kFileSignature = "\x89HDF\r\n\x1a\n";
constexpr std::string_view kHeaderSignature = "OHDR";
constexpr std::string_view kContinuationSignature = "OCHK";
constexpr std::size_t kSuperblockSize = 48;
constexpr std::size_t kSignatureSize = 4;
constexpr std::size_t kChecksumSize = 4;
constexpr std::size_t kMessagePrefix = 4;      // type, size, flags
constexpr std::uint64_t kSizeOfSizeBits = 3;   // of a header's flags; the others ask for times and orders
constexpr std::uint64_t kMessageFlags = 0x05;  // constant, not to be shared

bool checksum_fits(std::span<const std::byte> bytes) {
  const std::size_t body = bytes.size() - kChecksumSize;
  return Hdf5Cursor(bytes.subspan(body)).number(kChecksumSize) == hdf5_checksum(bytes.first(body));
}

}  // namespace

Error damaged(const std::string& what) { return {ErrorCode::kDataLoss, "the tensor file " + what, {}}; }

std::span<const std::byte> Hdf5Cursor::take(std::uint64_t size) {
  if (size > bytes_.size()) {
    ok_ = false;
    bytes_ = {};
    return {};
  }
  const auto front = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return front;
}

std::uint64_t Hdf5Cursor::number(std::size_t size) {
  std::uint64_t number = 0;
  std::size_t shift = 0;
  for (const std::byte byte : take(size)) {
    number |= std::to_integer<std::uint64_t>(byte) << shift;
    shift += 8;
  }
  return number;
}

std::string_view Hdf5Cursor::text(std::uint64_t size) {
  const auto bytes = take(size);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::span<const std::byte>> Hdf5FileReader::take(std::uint64_t offset, std::uint64_t size,
                                                        const std::string& object) {
  if (offset > file_.size() || size > file_.size() - offset) {
    return damaged("ends before " + object + " does (" + std::to_string(size) + " bytes at " + std::to_string(offset) +
                   " of " + std::to_string(file_.size()) + ")");
  }
  const auto next = taken_.upper_bound(offset);
  const bool overlaps_next = next != taken_.end() && next->first < offset + size;
  const bool overlaps_previous = next != taken_.begin() && std::prev(next)->second > offset;
  if (overlaps_next || overlaps_previous) {
    return damaged("uses the same bytes twice, the second time for " + object);
  }
  taken_.emplace(offset, offset + size);
  return file_.subspan(offset, size);
}

Result<std::uint64_t> Hdf5FileReader::read_superblock() {
  if (file_.size() < kSuperblockSize) return damaged("is shorter than the superblock of HDF5");
  const auto block = take(0, kSuperblockSize, "the superblock");
  Hdf5Cursor cursor(*block);
  if (cursor.text(kFileSignature.size()) != kFileSignature) return damaged("does not begin with the signature of HDF5");
  if (const auto version = cursor.number(1); version != 2) {
    return damaged("has a superblock of version " + std::to_string(version) + " instead of 2");
  }
  if (!checksum_fits(*block)) return damaged("has a superblock with a wrong checksum");
  const auto offset_size = cursor.number(1);
  const auto length_size = cursor.number(1);
  if (offset_size != 8 || length_size != 8) return damaged("has addresses of another size than 8 bytes");
  if (cursor.number(1) != 0) return damaged("is marked as open for writing");
  if (cursor.number(8) != 0) return damaged("has a user block");
  if (cursor.number(8) != kNoAddress) return damaged("has a superblock extension");
  if (const auto end = cursor.number(8); end != file_.size()) {
    return damaged("has " + std::to_string(file_.size()) + " bytes, but its superblock says " + std::to_string(end));
  }
  return cursor.number(8);
}

Result<std::span<const std::byte>> Hdf5FileReader::read_first_chunk(std::uint64_t address, const std::string& object) {
  Hdf5Cursor cursor(file_.subspan(std::min<std::uint64_t>(address, file_.size())));
  if (cursor.text(kSignatureSize) != kHeaderSignature) {
    return damaged("has no object header of version 2 for " + object + " at " + std::to_string(address));
  }
  const std::uint64_t version = cursor.number(1);
  const std::uint64_t flags = cursor.number(1);
  if (version != 2 || (flags & ~kSizeOfSizeBits) != 0) return damaged("has an unexpected kind of header for " + object);
  const std::size_t size_of_size = std::size_t{1} << flags;
  const std::uint64_t messages = cursor.number(size_of_size);
  const std::uint64_t prefix = kSignatureSize + 2 + size_of_size;
  if (!cursor.ok() || messages > cursor.left()) return damaged("ends within the header of " + object);
  auto chunk = take(address, prefix + messages + kChecksumSize, "the header of " + object);
  if (!chunk) return chunk.error();
  if (!checksum_fits(*chunk)) return damaged("has a wrong checksum in the header of " + object);
  return chunk->subspan(prefix, messages);
}

Result<std::span<const std::byte>> Hdf5FileReader::read_next_chunk(const Chunk& chunk, const std::string& object) {
  auto bytes = take(chunk.offset, chunk.size, "the header of " + object);
  if (!bytes) return bytes.error();
  if (chunk.size < kSignatureSize + kChecksumSize ||
      Hdf5Cursor(*bytes).text(kSignatureSize) != kContinuationSignature) {
    return damaged("has no continued header for " + object + " at " + std::to_string(chunk.offset));
  }
  if (!checksum_fits(*bytes)) return damaged("has a wrong checksum in the header of " + object);
  return bytes->subspan(kSignatureSize, chunk.size - kSignatureSize - kChecksumSize);
}

Result<std::vector<Hdf5FileReader::Chunk>> Hdf5FileReader::read_messages(std::span<const std::byte> chunk,
                                                                         const std::string& object,
                                                                         std::vector<Hdf5Message>& messages) {
  std::vector<Chunk> continuations;
  Hdf5Cursor cursor(chunk);
  while (cursor.left() >= kMessagePrefix) {
    const auto type = static_cast<Hdf5MessageType>(cursor.number(1));
    const std::uint64_t size = cursor.number(2);
    const std::uint64_t flags = cursor.number(1);
    const auto body = cursor.take(size);
    if (!cursor.ok()) return damaged("has a message that leaves the header of " + object);
    if (type == Hdf5MessageType::kNil) continue;
    if ((flags & ~kMessageFlags) != 0) return damaged("has a shared or unknown message in the header of " + object);
    if (type != Hdf5MessageType::kContinuation) {
      messages.push_back({type, body});
      continue;
    }
    Hdf5Cursor fields(body);
    const Chunk next{fields.number(8), fields.number(8)};
    if (!fields.at_end()) return damaged("has a malformed continuation in the header of " + object);
    continuations.push_back(next);
  }
  return continuations;
}

Result<std::vector<Hdf5Message>> Hdf5FileReader::read_object(std::uint64_t address, const std::string& object) {
  auto chunk = read_first_chunk(address, object);
  if (!chunk) return chunk.error();
  std::vector<Hdf5Message> messages;
  auto waiting = read_messages(*chunk, object, messages);
  if (!waiting) return waiting.error();
  // Each chunk takes bytes of the file that no other may take: the loop ends.
  while (!waiting->empty()) {
    const Chunk next = waiting->back();
    waiting->pop_back();
    chunk = read_next_chunk(next, object);
    if (!chunk) return chunk.error();
    auto more = read_messages(*chunk, object, messages);
    if (!more) return more.error();
    waiting->insert(waiting->end(), more->begin(), more->end());
  }
  return messages;
}

}  // namespace everstep::storage
