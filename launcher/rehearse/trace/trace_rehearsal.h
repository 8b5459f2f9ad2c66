#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cli/command.h"
#include "launcher/job/train_request.h"
#include "launcher/rehearse/trace/trace_figures.h"
#include "launcher/rehearse/trace/trace_request.h"

namespace everstep::launcher {

// What a rehearsal came to.
struct TraceResult {
  TraceRecord record;
  int killed = 0;                     // workers, by the trace
  int asked_to_leave = 0;             // those that went in the time of their notice
  int started = 0;                    // after the beginning
  std::vector<std::string> ended;     // names of workers that ended though nobody wanted them to
  bool took_all_in = false;           // in the end the job trained with a plan for all that were there
  std::int64_t audited = 0;           // minibatches that the files prove to be consumed exactly once
  std::vector<std::string> problems;  // what the files prove to be wrong
  std::string output;                 // the directory of the run
  TrainRequest job;
};

// Runs a real job on this host through the request's schedule. Ctrl-C and SIGTERM end it (kCancelled); nothing that it
// started lives when it returns.
Outcome rehearse_trace(const TraceRequest& request, Streams& streams, TraceResult& result);

}  // namespace everstep::launcher
