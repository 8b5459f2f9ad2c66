#include "base/log_line.h"

#include <array>
#include <charconv>

#include "base/utf8.h"

namespace everstep {
namespace {

bool needs_quotes(std::string_view value) {
  constexpr std::string_view kMisread = " \"=\\";
  if (value.empty() || value.find_first_of(kMisread) != std::string_view::npos) return true;
  while (!value.empty()) {
    const Utf8Character character = first_character(value);
    if (!character.is_harmless()) return true;
    value.remove_prefix(character.size);
  }
  return false;
}

void append_escaped(std::string& text, std::string_view bytes) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += "\\x";
    text += kHexDigits[byte >> 4];
    text += kHexDigits[byte & 0xF];
  }
}

void append_quoted(std::string& text, std::string_view value) {
  text += '"';
  while (!value.empty()) {
    const Utf8Character character = first_character(value);
    const std::string_view bytes = value.substr(0, character.size);
    if (bytes == "\n") {
      text += "\\n";
    } else if (!character.is_harmless()) {
      append_escaped(text, bytes);
    } else {
      if (bytes == "\"" || bytes == "\\") text += '\\';
      text += bytes;
    }
    value.remove_prefix(character.size);
  }
  text += '"';
}

}  // namespace

LogLine& LogLine::add(std::string_view key, std::string_view value) {
  if (!text_.empty()) text_ += ' ';
  text_ += key;
  text_ += '=';
  if (needs_quotes(value)) {
    append_quoted(text_, value);
  } else {
    text_ += value;
  }
  return *this;
}

LogLine& LogLine::add(std::string_view key, double value) {
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
  return add(key, std::string_view(digits.data(), end));
}

}  // namespace everstep
