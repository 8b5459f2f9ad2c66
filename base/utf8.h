#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace everstep {

// One character of a text in UTF-8, or one byte that is none.
struct Utf8Character {
  std::uint32_t code = 0;
  std::size_t size = 1;  // in bytes
  bool is_valid = false;

  // Whether a terminal only shows it. Control characters of seven and eight bits, marks that turn the direction of
  // writing, and bytes that are no UTF-8 may do something else.
  bool is_harmless() const;
};

// Of a text that is not empty.
Utf8Character first_character(std::string_view text);

}  // namespace everstep
