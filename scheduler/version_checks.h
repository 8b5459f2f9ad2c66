#pragma once

#include <string>

#include "base/result.h"
#include "scheduler/schedule.h"

// The part of validate() that is about weights and gradients. For validate.cpp only.
namespace everstep::scheduler {

// Every op reads a weight version that it may read, every gradient enters the update of its own window exactly once,
// chunks have as many gradient buffers as they need, and captures hold exactly the rounds they name. The schedule must
// be complete.
Status check_versions(const Schedule& schedule);

// How a complaint names an op, and how it starts.
std::string at(int worker, const Op& op);
Error broken(std::string message);

}  // namespace everstep::scheduler
