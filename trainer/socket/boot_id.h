#pragma once

#include <string>

namespace everstep::trainer {

// This boot of this host.
std::string boot_id();

}  // namespace everstep::trainer
