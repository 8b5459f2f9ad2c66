#pragma once

#include <cstdint>
#include <vector>

#include "launcher/config.h"
#include "launcher/options.h"
#include "launcher/values.h"
#include "scheduler/planner.h"

namespace everstep::launcher {

inline constexpr int kMostWorkers = 16384;

// The options of every command that makes plans: the model, the workers' hardware, the window.
std::vector<OptionSpec> planning_options();

struct PlanningInput {
  scheduler::ModelProfile profile;
  scheduler::PlanOptions options;
};

// Reads and checks them all. Fills `failure` instead if one does not fit.
PlanningInput read_planning_input(const Config& config, Outcome& failure);

// --memory-gib in bytes. The option must be set.
std::int64_t read_memory_bytes(Values& values);

// `count` workers that have no names yet, `per_host` on each host.
std::vector<scheduler::WorkerInfo> unnamed_workers(int count, int per_host = 1);

}  // namespace everstep::launcher
