#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace everstep::launcher {

inline constexpr std::size_t kLogTimeSize = 30;

// "time=2026-11-17T22:05:59.123Z " for milliseconds since 1970 (UTC), written into `room`. Asks nobody for memory, so
// that a handler of signals may call it.
std::string_view write_log_time(std::int64_t milliseconds, std::array<char, kLogTimeSize>& room);

// The clock on the wall, which may be set meanwhile: for people, never for decisions. Safe in a handler of signals.
std::int64_t wall_clock_ms();

// What each line of a log begins with now.
std::string log_time();

}  // namespace everstep::launcher
