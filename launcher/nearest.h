#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace everstep::launcher {

// The name that a misspelt `word` most likely meant: a few letters wrong, missing, added or swapped, or the only name
// that begins with it. Empty if none is close.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

}  // namespace everstep::launcher
