#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace everstep::launcher {

// Two lower-case hexadecimal digits per byte, and back; nothing for any other text.
std::string to_hex(std::string_view bytes);
std::optional<std::string> from_hex(std::string_view text);

// 16 lower-case hexadecimal digits, and back.
std::string hex_text(std::uint64_t number);
std::optional<std::uint64_t> parse_hex(std::string_view text);

}  // namespace everstep::launcher
