#include "trainer/checkpoints/restore.h"

#include <algorithm>

#include "storage/reshard.h"
#include "trainer/checkpoints/parallel.h"

namespace everstep::trainer {
namespace {

Status fill(const storage::FilePorts& ports, const storage::Manifest& manifest, const storage::FileFetch& fetch,
            const std::vector<StateTensor>& tensors) {
  const auto file = load_block_file(ports, manifest.job, manifest.lineage, fetch.file);
  if (!file) return file.error();
  for (const storage::FileFetch::Part& part : fetch.parts) {
    const std::span<const std::byte> bytes = file->tensor(fetch.file, part.tensor);
    EVERSTEP_CHECK(bytes.size() == tensors[part.wanted].bytes.size(), "a tensor of the type and shape asked for");
    std::copy(bytes.begin(), bytes.end(), tensors[part.wanted].bytes.begin());
  }
  return {};
}

}  // namespace

Result<storage::CatalogEntry> find_checkpoint(const storage::Catalog& catalog, const storage::Digest& manifest) {
  const auto listing = catalog.list();
  if (!listing) return listing.error();
  for (const storage::CatalogEntry& entry : listing->entries) {
    if (entry.head.manifest == manifest) return entry;
  }
  return Error{ErrorCode::kDataLoss, "the checkpoint to resume from is gone", "leave the checkpoint directory alone"};
}

Status restore_stage(const storage::FilePorts& ports, const storage::Manifest& manifest, const ModelConfig& model,
                     Accumulation accumulation, const StageLayout& layout, const StageState& state, int threads) {
  const std::vector<StateTensor> tensors = state_tensors(model, accumulation, layout, state);
  std::vector<storage::WantedTensor> wanted;
  wanted.reserve(tensors.size());
  for (const StateTensor& tensor : tensors) wanted.push_back(tensor.stored);
  const auto fetches = reshard(manifest, wanted);
  if (!fetches) return fetches.error();
  return for_each_in_parallel(fetches->size(), threads,
                              [&](std::size_t i) { return fill(ports, manifest, (*fetches)[i], tensors); });
}

}  // namespace everstep::trainer
