#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"
#include "launcher/worker/worker_device.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// One minibatch there and back through a model of an embedding, one block and a head, with dropout, twice: of both
// families in both precisions, each on all devices. On a device it is compared with the same on the host; there fp32 is
// compared with differences of the loss along the gradient, and bf16 with fp32. `directory` has the text. {"blocks":
// [{"device", "family": "gpt" or "bert", "precision": "fp32" or "bf16", "against": "cpu", "differences" or "fp32",
// "distance": the larger relative one of the loss's and the gradient's, "loss", "expected_loss", "repeats": the second
// time has the same bits, "finite", "differs_from": the first device of the same name if that has other bits, else
// ""}]}. What a device cannot compute has "device", "family", "precision" and "error".
Result<storage::Json> examine_blocks(const std::vector<WorkerDevice>& devices, const std::filesystem::path& directory);

}  // namespace everstep::launcher
