#pragma once

#include <cstdint>
#include <string>

#include "base/tick.h"

namespace everstep::launcher {

// As the system calls this host.
std::string host_name();

// Physical memory of this host.
std::int64_t host_memory_bytes();

// Memory of this process that is in use now, and the most that was since the last reset.
std::int64_t resident_bytes();
std::int64_t peak_resident_bytes();
void reset_peak_resident_bytes();

// The host's monotonic clock: the same for all its processes.
Tick monotonic_now();

// A program that was installed in the same directory as this one.
std::string sibling_program(const std::string& name);

}  // namespace everstep::launcher
