#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "launcher/rehearse/trace/trace_slice.h"
#include "launcher/rehearse/trace/worker_schedule.h"

namespace everstep::launcher {

// What waits for people or machines in real life shrinks with the trace.
struct ScaledLimits {
  double join_debounce = 0;  // seconds
  double join_interval = 0;
  int lease_ttl = 0;

  bool operator==(const ScaledLimits&) const = default;
};

// The defaults of `everstep train`, so many times as short. A lease shorter than kShortestLease would take a process
// that a busy machine let wait for a dead one.
inline constexpr int kShortestLease = 5;
ScaledLimits scaled_limits(double speedup);

// "2=2x1,3=3x1,4=4x1,…": depth 4 where it divides the workers, else 3, 5, 7 or 2, whichever leaves the fewest spares,
// so that changes re-plan in earnest. One worker is left to the planner.
std::string trace_shapes(int most_workers);

struct TraceRequest {
  std::string path;
  TraceSlice slice;
  WorkerSchedule schedule;
  int most_workers = 0;
  double speedup = 1;
  double notice = 0;           // seconds of the trace; 0: none
  std::optional<double> cost;  // seconds per change for the prediction; nothing: what was measured
  ScaledLimits limits;
  Config train;  // of the job, as `everstep train` would have it
  bool json = false;

  double real_seconds() const { return static_cast<double>(slice.duration_ms) / 1000 / speedup; }
};

std::vector<OptionSpec> trace_options();

// Reads the trace too. Fills `failure` instead if something does not fit.
TraceRequest read_trace_request(const Config& config, Outcome& failure);

}  // namespace everstep::launcher
