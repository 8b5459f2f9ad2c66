#pragma once

#include <cstdint>

namespace everstep::launcher {

// For a job that starts: no two ever have the same.
std::uint64_t random_lineage();

}  // namespace everstep::launcher
