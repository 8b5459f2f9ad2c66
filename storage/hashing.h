#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace everstep::storage {

// 256 bits that stand for content: SHA-256 of a file, or an HMAC with it.
struct Digest {
  std::array<std::byte, 32> bytes{};

  bool operator==(const Digest&) const = default;
};

// 64 lower-case hexadecimal digits, and back; nothing for any other text.
std::string to_string(const Digest& digest);
std::optional<Digest> parse_digest(std::string_view text);

class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void add(std::span<const std::byte> bytes) = 0;
  virtual Digest finish() = 0;  // once, at the end
};

class Hashing {
 public:
  virtual ~Hashing() = default;
  virtual std::unique_ptr<Hasher> sha256() const = 0;
  virtual Digest hmac_sha256(std::string_view key, std::string_view text) const = 0;
};

Digest sha256_of(const Hashing& hashing, std::string_view text);

// Equal in a time that does not depend on where they differ.
bool equal_digests(const Digest& a, const Digest& b);

}  // namespace everstep::storage
