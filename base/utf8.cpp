#include "base/utf8.h"

namespace everstep {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t place) { return static_cast<std::uint8_t>(text[place]); }

// Bytes of the character that starts so; 0: none does.
std::size_t size_of(std::uint8_t first) {
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0) return 2;
  if (first >= 0xE0 && first < 0xF0) return 3;
  return first >= 0xF0 && first < 0xF5 ? 4 : 0;
}

}  // namespace

Utf8Character first_character(std::string_view text) {
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const std::uint8_t first = byte_at(text, 0);
  const std::size_t size = size_of(first);
  if (size == 0 || size > text.size()) return {};
  Utf8Character character{size == 1 ? first : first & (0x7FU >> size), size, true};
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte_at(text, i) & 0xC0) != 0x80) return {};
    character.code = character.code << 6 | (byte_at(text, i) & 0x3F);
  }
  const bool is_surrogate = character.code >= 0xD800 && character.code < 0xE000;
  if (character.code < kSmallest[size] || character.code > 0x10FFFF || is_surrogate) return {};
  return character;
}

bool Utf8Character::is_harmless() const {
  const auto lies = [this](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  const bool is_control = code < ' ' || lies(0x7F, 0x9F) || lies(0x2028, 0x2029);
  const bool turns_direction = lies(0x200E, 0x200F) || lies(0x202A, 0x202E) || lies(0x2066, 0x2069) || code == 0x061C;
  return is_valid && !is_control && !turns_direction;
}

}  // namespace everstep
