#pragma once

#include <string_view>

#include "base/result.h"
#include "scheduler/profile.h"

namespace everstep::launcher {

// Reads a model profile from JSON:
//
//   { "name": "mine", "tokens_per_minibatch": 4096,
//     "weight_bytes": 2, "gradient_bytes": 4, "optimizer_bytes": 12,
//     "blocks": [ { "name": "embedding", "parameters": 39385344, "forward_ms": 0.1, "backward_ms": 0.2,
//                   "activation_bytes": 6291456, "output_bytes": 6291456 },
//                 { "name": "block", "repeat": 12, … } ] }
//
// Bytes per parameter, tokens and byte counts of blocks are optional. The error names line and column, or the member.
Result<scheduler::ModelProfile> parse_profile(std::string_view text);

}  // namespace everstep::launcher
