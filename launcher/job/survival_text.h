#pragma once

#include <string>
#include <vector>

#include "scheduler/plan.h"

namespace everstep::launcher {

// "any 1 worker, but no whole host, lost at once, without touching disk; workers w0 and w2 at once would be too many".
// The names are those of one_loss_too_many().
std::string survival_text(const scheduler::Survival& survives, const std::vector<std::string>& too_many);

}  // namespace everstep::launcher
