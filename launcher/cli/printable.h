#pragma once

#include <string>
#include <string_view>

namespace everstep::launcher {

// The text as a terminal may see it. Control characters of seven and eight bits, marks that turn the direction of
// writing, and bytes that are no UTF-8 become '?': what other processes wrote must not move the cursor.
std::string printable(std::string_view text);

}  // namespace everstep::launcher
