#pragma once

#include "base/result.h"
#include "storage/catalog.h"
#include "trainer/checkpoints/state_tensors.h"

namespace everstep::trainer {

// The committed checkpoint whose manifest has that digest.
Result<storage::CatalogEntry> find_checkpoint(const storage::Catalog& catalog, const storage::Digest& manifest);

// Fills the buffers of a stage's state that are not empty from the files of a checkpoint, on so many threads. Every
// file is verified before a byte of it is used: kDataLoss names the one that is damaged.
Status restore_stage(const storage::FilePorts& ports, const storage::Manifest& manifest, const ModelConfig& model,
                     Accumulation accumulation, const StageLayout& layout, const StageState& state, int threads);

}  // namespace everstep::trainer
