#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/cli/exit_code.h"

namespace everstep::launcher {

// `event=stopping …`: what the first signal that asks to leave comes to.
std::string stopping_event(int signal);

// How a run ends that a signal stopped before its last step.
Failure stopped_early(std::int64_t done, std::int64_t wanted, std::optional<int> signal);

// Training may have ended well and yet be lost.
Failure last_checkpoint_lost(Error error);

}  // namespace everstep::launcher
