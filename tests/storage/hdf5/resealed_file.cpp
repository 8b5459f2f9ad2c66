#include "tests/storage/hdf5/resealed_file.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "storage/hdf5/hdf5_header.h"

namespace everstep::storage {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::size_t kChecksum = 4;

void write_checksum(Bytes& file, std::size_t begin, std::uint64_t size) {
  if (begin > file.size() || size > file.size() - begin || kChecksum > file.size() - begin - size) return;
  const Bytes sum = little_endian(hdf5_checksum(std::span(file).subspan(begin, size)));
  std::copy_n(sum.begin(), kChecksum, file.begin() + static_cast<std::ptrdiff_t>(begin + size));
}

// The continued parts of a header whose messages these are, one level deep.
void reseal_continuations(Bytes& file, const Bytes& messages) {
  Hdf5Cursor cursor(messages);
  while (cursor.left() >= 4) {
    const auto type = static_cast<Hdf5MessageType>(cursor.number(1));
    const std::uint64_t size = cursor.number(2);
    cursor.number(1);
    Hdf5Cursor body(cursor.take(size));
    if (type != Hdf5MessageType::kContinuation) continue;
    const std::uint64_t offset = body.number(8);
    const std::uint64_t length = body.number(8);
    if (length >= kChecksum) write_checksum(file, offset, length - kChecksum);
  }
}

}  // namespace

Bytes little_endian(std::uint64_t number) {
  Bytes bytes;
  for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
  return bytes;
}

void reseal(Bytes& file) {
  constexpr std::size_t kSuperblock = 44;
  constexpr std::size_t kHeaderPrefix = 6;  // signature, version, flags
  write_checksum(file, 0, kSuperblock);
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  for (std::size_t at = text.find("OHDR"); at != std::string_view::npos; at = text.find("OHDR", at + 1)) {
    if (file.size() - at < kHeaderPrefix) return;
    const std::size_t size_of_size = std::size_t{1} << std::to_integer<unsigned>(file[at + 5] & std::byte{3});
    Hdf5Cursor cursor{std::span(file).subspan(at + kHeaderPrefix)};
    const std::uint64_t size = cursor.number(size_of_size);
    const auto messages = cursor.take(std::min<std::uint64_t>(size, cursor.left()));
    reseal_continuations(file, Bytes(messages.begin(), messages.end()));
    if (size <= file.size()) write_checksum(file, at, kHeaderPrefix + size_of_size + size);
  }
}

}  // namespace everstep::storage
