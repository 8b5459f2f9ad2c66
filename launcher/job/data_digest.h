#pragma once

#include <string>

#include "base/result.h"
#include "storage/hashing.h"

namespace everstep::launcher {

// "<bytes>-<sha256>" of the data at that path (of Megatron's two files both), so that a run does not go on with other
// data under the same name. Of a large file up to 64 samples of 1 MiB, evenly spread, are looked at.
// kNotFound: there is none.
Result<std::string> data_digest(const std::string& path, const storage::Hashing& hashing);

}  // namespace everstep::launcher
