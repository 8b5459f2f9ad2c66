#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "launcher/job/checkpoint_store.h"
#include "trainer/reference/reference_run.h"

namespace everstep::launcher {

// An entry of the ledger and what it says came out.
struct CommittedEntry {
  trainer::HistoryEntry what;
  std::vector<double> losses;
};

// What there is to replay: from the beginning to one checkpoint.
struct CommittedHistory {
  storage::CatalogEntry end;
  std::vector<CommittedEntry> entries;
  std::multimap<Position, storage::CatalogEntry> kept;  // checkpoints on the way, the end among them
};

// To HEAD, or to the newest checkpoint at most so many updates in. kNotFound: there is none; kDataLoss: the ledger is
// damaged, or HEAD or a checkpoint that is not beyond that step; kInvalidArgument: a plan that nobody can replay.
Result<CommittedHistory> read_history(const storage::Catalog& catalog, std::optional<std::int64_t> to_step);

// Whether a replay can start at the checkpoint, one of those kept: whether it has all weights that minibatches behind
// it ran on. A checkpoint inside a window may lie behind the sums that the next window's provisional weights are made
// of. Those who trained had made them; the checkpoint has neither those sums nor the weights.
bool can_start_at(const CommittedHistory& history, const storage::Manifest& manifest);

}  // namespace everstep::launcher
