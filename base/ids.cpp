#include "base/ids.h"

#include "base/text.h"

namespace everstep {

std::string to_string(const WorkerId& id) { return hex_text(id.words[0]) + hex_text(id.words[1]); }

std::optional<WorkerId> parse_worker_id(std::string_view text) {
  constexpr std::size_t kDigitsPerWord = 16;
  const auto first = parse_hex(text.substr(0, kDigitsPerWord));
  if (!first) return std::nullopt;
  const auto second = parse_hex(text.substr(kDigitsPerWord));
  if (!second) return std::nullopt;
  return WorkerId{{*first, *second}};
}

std::ostream& operator<<(std::ostream& out, const WorkerId& id) { return out << to_string(id); }

}  // namespace everstep
