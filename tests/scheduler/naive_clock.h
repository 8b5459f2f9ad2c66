#pragma once

#include <string>
#include <vector>

#include "scheduler/schedule.h"

// The clock of clockwork a second time: nothing is calculated, everything is found by walking and trying.
namespace everstep::scheduler {

// By how many slots each pipeline is late: the first phases with which no device has two ops in one slot.
std::vector<int> naive_phases(const ScheduleRequest& request);

// How many rounds of a window have a forward before the update of the window before, if there was no drain.
int naive_rounds_begun_before_update(const ScheduleRequest& request);

// Whether the chunk runs a backward of a window before the update of the window before.
bool naive_backwards_meet(const ScheduleRequest& request, int device, int stage);

// Ops that do not stand in the order of their slots, and updates that stand before or after the wrong op.
std::vector<std::string> naive_slot_problems(const Schedule& schedule);

}  // namespace everstep::scheduler
