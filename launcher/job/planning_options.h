#pragma once

#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/options.h"
#include "launcher/job/plan_request.h"

namespace everstep::launcher {

inline constexpr int kMostWorkers = 16384;

// The options of commands that make plans for workers that need not be there: those of model_options and wish_options,
// and what the workers are made of, by default what `everstep train` reckons with.
std::vector<OptionSpec> planning_options();

struct PlanningInput {
  scheduler::ModelProfile profile;
  scheduler::PlanOptions options;
};

// Reads and checks them all. `workers` share the memory of this host unless it is said what one has. Fills `failure`
// instead if one does not fit.
PlanningInput read_planning_input(const Config& config, int workers, Outcome& failure);

}  // namespace everstep::launcher
