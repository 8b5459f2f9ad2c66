#include "storage/hashing.h"

#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/text.h"

namespace everstep::storage {

std::string to_string(const Digest& digest) {
  std::string bytes(digest.bytes.size(), '\0');
  std::memcpy(bytes.data(), digest.bytes.data(), bytes.size());
  return to_hex(bytes);
}

std::optional<Digest> parse_digest(std::string_view text) {
  Digest digest;
  const auto bytes = from_hex(text);
  if (!bytes || bytes->size() != digest.bytes.size()) return std::nullopt;
  std::memcpy(digest.bytes.data(), bytes->data(), bytes->size());
  return digest;
}

Digest sha256_of(const Hashing& hashing, std::string_view text) {
  const auto hasher = hashing.sha256();
  hasher->add(std::as_bytes(std::span(text)));
  return hasher->finish();
}

bool equal_digests(const Digest& a, const Digest& b) {
  std::byte difference{0};
  for (std::size_t i = 0; i < a.bytes.size(); ++i) difference |= a.bytes[i] ^ b.bytes[i];
  return difference == std::byte{0};
}

}  // namespace everstep::storage
