#include "base/log_line.h"

#include <array>
#include <charconv>

namespace everstep {
namespace {

bool needs_quotes(std::string_view value) {
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7F || c == '"' || c == '=' || c == '\\') return true;
  }
  return value.empty();
}

void append_quoted(std::string& text, std::string_view value) {
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  text += '"';
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n') {
      text += "\\n";
    } else if (byte < ' ' || byte == 0x7F) {
      text += "\\x";
      text += kHexDigits[byte >> 4];
      text += kHexDigits[byte & 0xF];
    } else {
      text += c;
    }
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
