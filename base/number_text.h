#pragma once

#include <string>

namespace everstep {

// The number with exactly so many digits after the point. The locale plays no part. `value` must be finite.
std::string fixed_text(double value, int decimals);

// The number with at most so many digits after the point, without trailing zeros: number_text(2.50, 2) is "2.5".
std::string number_text(double value, int max_decimals);

}  // namespace everstep
