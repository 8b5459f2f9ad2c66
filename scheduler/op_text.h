#pragma once

#include <span>
#include <string_view>

#include "scheduler/op.h"

namespace everstep::scheduler {

// Room for the text form of any op.
inline constexpr std::size_t kLongestOpText = 96;

// The text form of an op in `room`, which has kLongestOpText characters. Allocates nothing and takes no lock, so that a
// signal handler may call it.
std::string_view write_text(const Op& op, std::span<char, kLongestOpText> room);

}  // namespace everstep::scheduler
