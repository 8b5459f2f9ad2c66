#pragma once

#include <filesystem>

#include "base/result.h"
#include "launcher/worker/worker_device.h"
#include "storage/json/json.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

// The profile of a model on this device, as `--profile=FILE` of `everstep plan` takes it: each kind of block
// is timed alone, and bytes are what the planner reckons with.
Result<storage::Json> measure_profile(const WorkerDevice& device, const trainer::ModelConfig& model,
                                      const std::filesystem::path& directory);

}  // namespace everstep::launcher
