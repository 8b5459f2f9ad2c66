#pragma once

#include <optional>
#include <string>

#include "base/ids.h"
#include "trainer/loop/flight_recorder.h"

// What a signal that means a bug or a broken machine (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT) leaves of a worker: one
// line in its log that says who it was, in which generation and at which step, and the op at hand:
//   time=… t=12.345 event=crashed signal=SIGSEGV worker=w2 pid=4711 generation=3 step=120 op=F119.0.3@2 op_is=running
// For the others it is a loss like any other.
namespace everstep::launcher {

struct CrashScene {
  std::string worker;
  const trainer::FlightRecorder* recorder = nullptr;  // outlives the scene
};

// From now on this process reports: the line goes to standard error, and the signal's own action follows. In builds
// with a sanitizer, which has handlers and reports of its own, nothing changes.
void report_crashes();

// What is said then. Not while another thread crashes.
void set_crash_scene(const CrashScene& scene);
void set_crash_generation(Generation generation);

// The report in a worker's log for the signal that ended it, for people: "generation 3 at step 120 (F119.0.3@2
// running)". Nothing: there is none.
std::optional<std::string> crash_told_in(const std::string& log_path, int signal);

}  // namespace everstep::launcher
