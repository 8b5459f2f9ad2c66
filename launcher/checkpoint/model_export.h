#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_store.h"
#include "trainer/model/model_config.h"

namespace everstep::launcher {

struct ExportReport {
  std::vector<std::string> files;  // names in the output directory
  std::uint64_t bytes = 0;
  std::uint64_t tensors = 0;

  bool operator==(const ExportReport&) const = default;
};

// Writes model.safetensors and config.json into the directory (made if it is missing) as Hugging Face has them: the
// tied copy of the embedding is left out. Every byte is verified on the way, and nothing under these names is visible
// before it is complete: a failure or a signal (kCancelled) leaves none of them. Files that are there already are
// refused, never overwritten. Holds one block in memory.
Result<ExportReport> export_safetensors(CheckpointStore& store, const storage::CatalogEntry& entry,
                                        const std::string& directory, Streams& streams);

}  // namespace everstep::launcher
