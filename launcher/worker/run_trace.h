#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/plan.h"
#include "trainer/loop/flight_recorder.h"

namespace everstep::launcher {

// An op of one worker as a line of text: the op, when it started and when it ended. The clock is the host's, so the
// lines of all workers fit together.
std::string trace_line(const trainer::OpRecord& record);

// What all workers of a plan did, as a trace for Perfetto. `workers` has the lines of each; ops that did not end are
// left out. kInternal for lines that trace_line did not make.
Result<std::string> merge_traces(const scheduler::Plan& plan, const std::vector<std::string>& workers);

}  // namespace everstep::launcher
