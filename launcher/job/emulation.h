#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "launcher/cli/config.h"
#include "launcher/cli/exit_code.h"
#include "launcher/cli/options.h"
#include "scheduler/plan.h"
#include "scheduler/profile.h"
#include "trainer/emulated/emulated_stage.h"

namespace everstep::launcher {

// Times of a device that waits instead of computing, for one stage of a model that is cut into `depth` stages; or of
// the whole model, of which each stage takes as much as the planner reckons with.
struct Emulation {
  double forward_ms = 0;
  double backward_ms = 0;  // without the gradients of the weights, if those have a time of their own
  double weights_ms = 0;
  bool of_model = false;

  bool operator==(const Emulation&) const = default;
};

// --emulate and --emulate-link.
std::vector<OptionSpec> emulation_options();

// Nothing: not asked for, or wrong, which becomes the failure if there is none yet.
std::optional<Emulation> read_emulation(const Config& config, Outcome& failure);

// Bytes per second; nothing: what there is. Only emulated devices have such links.
std::optional<std::int64_t> read_emulated_link(const Config& config, bool emulated, Outcome& failure);

// What the planner reckons with: what is emulated takes the place of what would be computed.
scheduler::Hardware emulated_hardware(scheduler::Hardware hardware, const std::optional<Emulation>& emulation,
                                      const std::optional<std::int64_t>& link_bytes_per_second);
scheduler::ModelProfile emulated_profile(scheduler::ModelProfile profile, const std::optional<Emulation>& emulation);

// How long each of the plan's stages waits. Where one worker has several stages of a pipeline they share its time.
trainer::EmulatedTimes emulated_times(const Emulation& emulation, const scheduler::Plan& plan);

// How long a stage of these blocks waits, of the times of a whole model.
trainer::EmulatedTimes emulated_part(const Emulation& emulation, const scheduler::ModelProfile& profile,
                                     int first_block, int end_block);

}  // namespace everstep::launcher
