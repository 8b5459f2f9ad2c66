#pragma once

#include <string>

#include "scheduler/schedule.h"
#include "scheduler/timeline.h"

namespace everstep::scheduler {

// The timeline as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing open: JSON in the trace event format. A
// group is a process and a device a thread; forwards, backwards (both halves of them where they are split) and updates
// are slices, reduces and captures instants. Their arguments are the fields of the op. Ends with a newline.
std::string draw_trace(const Schedule& schedule, const Timeline& timeline, double microseconds_per_tick);

}  // namespace everstep::scheduler
