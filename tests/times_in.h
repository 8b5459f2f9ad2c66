#pragma once

#include <string>
#include <string_view>

namespace everstep {

// How often the part stands in the text.
inline int times_in(const std::string& text, std::string_view part) {
  int times = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++times;
  return times;
}

}  // namespace everstep
