#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launcher/job/checkpoint_store.h"
#include "launcher/proof/replay.h"

namespace everstep::launcher {

// What a dishonest or broken trainer does; the documents that tell of it have the right digests.
struct Untruths {
  std::set<std::int64_t> poisoned{};                   // positions whose gradients are not finite: no untruth yet
  std::set<std::int64_t> left_out{};                   // windows whose updates are skipped for no reason
  std::set<int> not_run{};                             // positions that are left out: no untruth either
  std::function<void(storage::LedgerEntry&)> entry{};  // what the ledger tells instead
  std::function<void(Position, const trainer::StageState&)> state{};  // what is stored of block 1 instead
  bool reproducible = true;
  bool provisional = false;       // a pipeline whose windows begin on provisional weights
  bool keeps_provisional = true;  // the checkpoint at step 2 has those that the next window begins on
};

// A job of six updates that was really trained, by the reference executor on a model that costs nothing. Its
// checkpoints are at step 2, at step 3 and 2 minibatches, and at step 6.
class TrainedJob {
 public:
  // In a directory that is there.
  TrainedJob(const std::string& directory, const Untruths& untruths);

  Result<ReplayReport> replayed(const ReplayRequest& request = {});

  // Oldest first.
  const std::vector<storage::CatalogEntry>& checkpoints() const { return checkpoints_; }
  std::string path_of_manifest(const storage::CatalogEntry& entry) const;
  std::string path_of_head() const { return location_.path() + "/HEAD"; }

 private:
  trainer::TrainHooks hooks_of(const TrainRequest& asked) const;
  scheduler::Plan plan() const;
  trainer::CutKind kind_of(const storage::Manifest& manifest) const;
  storage::Manifest manifest_at(Position end, const trainer::ReferenceRun& run) const;
  void train_to(Position end, trainer::ReferenceRun& run);
  void commit(storage::Manifest manifest, const storage::LedgerSegment& ledger, const trainer::ReferenceRun& run);
  void write_files(storage::Manifest& manifest, const trainer::ReferenceRun& run);

  Untruths untruths_;
  StoreLocation location_;
  std::unique_ptr<CheckpointStore> store_;
  trainer::ModelConfig model_;
  storage::Settings configuration_;
  std::vector<std::int64_t> skipped_;  // windows so far
  std::vector<storage::CatalogEntry> checkpoints_;
};

}  // namespace everstep::launcher
