#pragma once

#include <string>

#include "base/result.h"
#include "launcher/job/train_request.h"
#include "storage/manifest.h"

namespace everstep::launcher {

// What `everstep train` was asked for when the checkpoint was written, as far as it decides what is computed: no
// checkpoints, no files to write. `data`, if not empty, is where the data lies now. kInvalidArgument: an emulated run,
// which has no numbers, or settings that make no run here.
Result<TrainRequest> stored_request(const storage::Manifest& manifest, const std::string& data);

// kInvalidArgument: that is not the data that the checkpoint was trained on.
Status check_same_data(const storage::Manifest& manifest, const std::string& path);

}  // namespace everstep::launcher
