#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace everstep::trainer {

// Appends numbers to bytes, lowest byte first whatever the machine's own order.
class WireWriter {
 public:
  template <typename Number>
  void put(Number number) {
    auto rest = static_cast<std::uint64_t>(static_cast<std::make_unsigned_t<Number>>(number));
    for (std::size_t i = 0; i < sizeof(Number); ++i, rest >>= 8) bytes_.push_back(static_cast<char>(rest & 0xFF));
  }

  // The length in 32 bits, then the text.
  void put_text(std::string_view text) {
    put(static_cast<std::uint32_t>(text.size()));
    bytes_ += text;
  }

  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }
  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what WireWriter wrote. Past the end everything is 0 or empty and ok() is false, so one check at the end is
// enough.
class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Number>
  Number get() {
    std::uint64_t number = 0;
    const std::span<const std::byte> digits = next(sizeof(Number));
    for (std::size_t i = 0; i < digits.size(); ++i) number |= std::to_integer<std::uint64_t>(digits[i]) << (8 * i);
    return static_cast<Number>(number);
  }

  template <typename Number>
  void get(Number& number) {
    number = get<Number>();
  }

  std::string get_text() {
    const std::span<const std::byte> text = next(get<std::uint32_t>());
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  bool ok() const { return ok_; }
  bool at_end() const { return ok_ && bytes_.empty(); }

 private:
  std::span<const std::byte> next(std::size_t count) {
    ok_ = ok_ && count <= bytes_.size();
    if (!ok_) return {};
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }

  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace everstep::trainer
