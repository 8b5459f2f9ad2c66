#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/worker/worker_device.h"
#include "storage/json/json.h"

namespace everstep::launcher {

// One minibatch there and back through a model of an embedding, one block and a head, with dropout.
struct BlockFigures {
  std::string family;     // "gpt", "bert"
  std::string precision;  // "fp32", "bf16"
  // What the gradient and the loss are compared with. On a device: "cpu", the same there. On the host fp32 is compared
  // with "differences" of the loss along the gradient, and bf16 with "fp32".
  std::string against;
  double distance = 0;  // relative: the larger one of the loss's and the gradient's
  double loss = 0;
  double expected_loss = 0;  // of what it is compared with
  bool repeats = false;      // a second time it has the same bits
  bool is_finite = false;
};

// Of both families in both precisions. `directory` has the text. The first failure ends it.
Result<std::vector<BlockFigures>> examine_blocks(const WorkerDevice& device, const std::filesystem::path& directory);

storage::Json blocks_json(const std::vector<BlockFigures>& blocks);

}  // namespace everstep::launcher
