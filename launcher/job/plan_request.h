#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "launcher/cli/values.h"
#include "launcher/job/emulation.h"
#include "scheduler/planner.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// What the workers are made of, as far as nobody measured it.
struct Device {
  double flops_per_second = 0;  // what one worker reaches
  scheduler::Hardware hardware;
};

// What `everstep train` reckons with: workers of one host, a core for each, tensors that go through memory. Each has
// `memory_bytes`.
Device cpu_device(std::int64_t memory_bytes);
// A GPU of a data centre.
Device gpu_device();

// What the planner is told about a job, under the same names and with the same defaults for every command that plans:
// the model (--model and what changes it, --precision, --minibatch, …), and what is wanted of the plan (--schedule,
// --depth, --width, --window, --memory-gib, …). Equal options are equal plans.
std::vector<OptionSpec> model_options();
// The first of them, which say what the model is: --model, its sizes and heads, nothing about how it is trained.
std::vector<OptionSpec> shape_options();
std::vector<OptionSpec> wish_options();

struct PlanRequest {
  trainer::ModelConfig model;
  trainer::Accumulation accumulation = trainer::Accumulation::kFloat;
  bool stash = false;
  std::optional<Emulation> emulation{};
  std::optional<std::int64_t> emulated_link{};  // bytes per second; nothing: what there is
  scheduler::PlanOptions wishes;                // their hardware as it is emulated
};

// Reads and checks the options above, and those of emulation_options(); `most_workers` is the largest depth and width.
// Fills `failure` instead if one does not fit, or if the sizes do not go together.
PlanRequest read_plan_request(const Config& config, const Device& device, int most_workers, Outcome& failure);

// What the planner reckons with.
scheduler::ModelProfile planned_profile(const PlanRequest& request, double flops_per_second);

// The planner's choice within the wishes. Kinds that it only compares with (GPipe, interleaved) are laid out over
// depth x width workers as they stand, and are then the only candidate. Plans that are nearly as fast are chosen to
// move little from wishes.previous. Pure.
Result<scheduler::PlanReport> report_plan(const scheduler::ModelProfile& profile,
                                          const std::vector<scheduler::WorkerInfo>& workers,
                                          const scheduler::PlanOptions& wishes);

// `count` workers that have no names yet, `per_host` on each host.
std::vector<scheduler::WorkerInfo> unnamed_workers(int count, int per_host = 1);

}  // namespace everstep::launcher
