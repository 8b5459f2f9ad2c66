#pragma once

#include "base/result.h"
#include "scheduler/schedule.h"

// A part of validate(): what holds for clockwork only.
namespace everstep::scheduler {

// On every worker forwards and backwards stand in the order of their slots, each update behind all ops up to its own
// slot and before all others, and the one at a drain behind all. True of every other kind. Needs ops that belong where
// they stand.
Status check_clock(const Schedule& schedule);

}  // namespace everstep::scheduler
