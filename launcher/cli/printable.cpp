#include "launcher/cli/printable.h"

#include "base/utf8.h"

namespace everstep::launcher {

std::string printable(std::string_view text) {
  std::string safe;
  while (!text.empty()) {
    const Utf8Character character = first_character(text);
    if (character.is_harmless()) {
      safe += text.substr(0, character.size);
    } else {
      safe += '?';
    }
    text.remove_prefix(character.size);
  }
  return safe;
}

}  // namespace everstep::launcher
