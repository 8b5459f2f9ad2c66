#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "storage/block_file.h"
#include "storage/reshard.h"
#include "trainer/checkpoints/checkpoint.h"

namespace everstep::trainer {

// One stored tensor and where its bytes lie in a stage's flat buffers.
struct StateTensor {
  storage::WantedTensor stored;
  std::span<std::byte> bytes;
};

// The tensors of a stage's state, block by block and kind by kind; buffers that are empty have none. The one place that
// knows how state is named in files: weights, previous and gradients under the parameter's name, moments and master in
// groups of theirs.
std::vector<StateTensor> state_tensors(const ModelConfig& model, Accumulation accumulation, const StageLayout& layout,
                                       const StageState& state);

// The files that this worker's part of a checkpoint consists of, all but writer, size and digest filled in.
std::vector<storage::BlockState> block_states(const ModelConfig& model, Accumulation accumulation, const StagedCut& cut,
                                              Generation generation);

// "float32" or "fixed48", as manifests say it.
std::string_view accumulation_name(Accumulation accumulation);

}  // namespace everstep::trainer
