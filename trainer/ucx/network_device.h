#pragma once

#include <string>

#include "base/result.h"

namespace everstep::trainer {

// The network device that has this IPv4 address: "lo" for 127.0.0.1. kInvalidArgument if none has.
Result<std::string> device_with_address(const std::string& host);

// Whether processes of one user may read each other's memory here, which makes large frames on one host four times as
// fast. Hardened kernels allow it to debuggers only.
bool may_read_other_processes();

}  // namespace everstep::trainer
