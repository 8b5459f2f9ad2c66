#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace everstep::launcher {

// The name that a misspelt `word` most likely meant: a few letters wrong, missing, added or swapped, or the only name
// that begins with it. Empty if none is close.
std::string nearest_name(std::string_view word, const std::vector<std::string>& names);

// "did you mean a, b or c?"; empty if there is no name.
std::string did_you_mean(const std::vector<std::string>& names);
// The same for one name, which may be empty.
std::string did_you_mean(const std::string& name);

// "a, b, c"
std::string comma_list(const std::vector<std::string>& names);

}  // namespace everstep::launcher
