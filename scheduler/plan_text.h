#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "scheduler/plan.h"

namespace everstep::scheduler {

// "amdp D=4 P=2 W=1 M=16 preload=2 cuts=0,2,4,6,8", with "lag=0" before the cuts of a clockwork plan: all of a plan
// that decides which weights a minibatch meets, and nothing about who its workers are.
std::string plan_text(const Plan& plan);

// And back, with workers that have no names; kInvalidArgument for any other text.
Result<Plan> parse_plan_text(std::string_view text);

}  // namespace everstep::scheduler
