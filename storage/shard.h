#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/ledger.h"
#include "storage/manifest.h"

namespace everstep::storage {

// One worker's word that its part of a checkpoint is durable: what it wrote, and what only it knows. Written beside the
// files, synced, and read by whoever makes the manifest; of no use afterwards.
struct Shard {
  std::string job;
  std::uint64_t lineage = 0;
  CheckpointName name;
  Version version;                        // of the weights, on all workers
  std::int64_t applied = 0;               // updates that were not skipped
  double clip_scale = 1;                  // what the last update multiplied its gradient by
  bool began_drained = false;             // the unfinished window, inside a window only
  bool began_provisional = false;         // the same; on provisional weights
  std::optional<double> validation_loss;  // of this very state, if it was measured
  std::vector<FileRecord> files;          // written now, or taken over from the checkpoint before
  std::vector<StoredLoss> window_losses;  // of the unfinished window's minibatches that ended on this worker
  std::vector<LedgerEntry> history;       // finished windows since the last committed checkpoint; from one worker only

  bool operator==(const Shard&) const = default;
};

// Refuses what no writer makes: numbers beyond all bounds, files out of order (by block, then kind), losses out of
// order.
Status check(const Shard& shard);

// "<lineage8>/<name>/shard-<inc8>-<rand8>.json", relative to the job's directory.
std::string shard_path(std::uint64_t lineage, const CheckpointName& name, const WriterTag& writer);

}  // namespace everstep::storage
