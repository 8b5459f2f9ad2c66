#pragma once

#include <string>

namespace everstep::launcher {

// "2.4153", or that it is not finite.
std::string loss_text(double loss);

// A learning rate, to four digits: "0.002193".
std::string rate_text(double rate);

// "42s", "3m05s", "2h07m", "5d03h".
std::string duration_text(double seconds);

// "812 tokens/s", "10.3 ktokens/s", "1.25 Mtokens/s".
std::string speed_text(double tokens_per_s);

}  // namespace everstep::launcher
