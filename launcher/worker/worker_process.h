#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "trainer/loop/flight_recorder.h"

namespace everstep::launcher {

inline constexpr std::size_t kRecordedOps = 256;
inline constexpr int kTorchThreads = 1;  // bits repeat with a fixed number only

// A line in this worker's log, which is its standard error, with the time in front: the wall clock's for people, and
// `t=`, the host's monotonic one, which all its workers share.
void log_event(const std::string& line);
void log_recorder(const trainer::FlightRecorder& recorder);

// What a failed check does before it ends the process.
struct LastWords {
  std::function<void(const Error&)> tell;             // may be empty
  const trainer::FlightRecorder* recorder = nullptr;  // its ops go to the log
  std::string worker{};                               // who this is, for the report of a crash
};
// They are also what the report of a crash is made from.
void set_last_words(LastWords words);

// Settings of the process that every worker wants: precise sleeps, memory that is kept, no death by a closed pipe, and
// a report of a crash.
void prepare_worker_process();

// Gives back to the kernel what is free in this process. The next buffers of that size cost fresh pages again: for when
// much was freed that is not needed soon.
void return_free_memory();

// The kernel's way not to outlive the supervisor; the end of the control socket is the other.
void die_with_parent();

}  // namespace everstep::launcher
