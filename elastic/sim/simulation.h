#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/tick.h"
#include "elastic/sim/fault.h"
#include "elastic/sim/mutation.h"
#include "scheduler/placement.h"

namespace everstep::elastic::sim {

struct SimulationOptions {
  std::uint64_t seed = 0;
  Mutation mutation = Mutation::kNone;
  scheduler::ScheduleKind schedule = scheduler::ScheduleKind::kClockwork;  // of all plans; or kOneFOneB
  std::function<void(const std::string& line)> trace{};                    // one line per event; nothing: none is made
};

// What came of one seed. The same options give the same report.
struct SimulationReport {
  std::optional<std::string> violation;  // "BITS: …, at 12.345 s"; nothing: all oracles hold
  FaultCounts faults;
  Tick simulated = 0;
  std::uint64_t events = 0;
  std::int64_t commits = 0;
  std::int64_t generations = 0;
  std::int64_t recoveries = 0;          // from memory after a loss
  std::int64_t group_stops = 0;         // of these from what a group kept
  std::int64_t resumes = 0;             // by an operator, because HEAD or the store could not be trusted
  std::int64_t shared_generations = 0;  // in which leadership passed on between two commits

  bool operator==(const SimulationReport&) const = default;
};

// A whole cluster in one thread: first with faults (BITS, ONCE, CHAIN, RESTORE and FENCE must hold all the time), then
// without (LIVE: a new HEAD comes within a stated time; NOHANG: something always happens).
SimulationReport simulate(const SimulationOptions& options);

}  // namespace everstep::elastic::sim
