#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "storage/block_file.h"
#include "storage/documents.h"
#include "storage/head.h"
#include "storage/ledger.h"
#include "storage/manifest.h"
#include "storage/retention.h"

namespace everstep::storage {

struct CatalogPorts {
  FilePorts files;
  const DocumentFormat& documents;
  const Seal& seal;
  HeadStore& head;
};

// One committed checkpoint, as far as its small documents tell.
struct CatalogEntry {
  Head head;  // or the commit record
  Manifest manifest;
};

// A checkpoint that cannot be used, and why.
struct Damage {
  std::string checkpoint;  // its directory
  Error error;
};

struct CatalogListing {
  std::vector<CatalogEntry> entries;  // newest (highest sequence) first
  std::vector<Damage> damaged;        // commit record or manifest cannot be trusted, or HEAD itself ("HEAD")
};

// What a save is about to become; `manifest.files` is complete, name and writer are chosen.
struct CommitRequest {
  Manifest manifest;  // parent, ledger and ledger_writer are filled in by commit()
  WriterTag writer;   // of manifest and ledger segment
  LedgerSegment ledger;
  std::optional<Head> parent;  // the checkpoint this state descends from: what was resumed from or committed last
};

struct PruneReport {
  std::vector<std::string> removed;  // checkpoints
  std::int64_t files = 0;
  std::uint64_t bytes = 0;
};

// The checkpoints of one job: `FilePorts::files` is rooted at the job's directory. It holds no state of its own, so
// several may look at one directory; at most one process commits and prunes (HeadStore decides between two).
class Catalog {
 public:
  explicit Catalog(CatalogPorts ports) : ports_(ports) {}

  // All committed checkpoints: HEAD's and those with a commit record. Reads the small documents only. Fails only if the
  // directory itself cannot be read; an empty or missing one has an empty listing.
  Result<CatalogListing> list() const;

  // Writes ledger segment and manifest, makes all names durable, moves HEAD, then writes the commit record. All files
  // of the manifest must be written and synced. A failure before HEAD moved leaves orphans only. Files of `parent` may
  // be named by the manifest only if it is also the HEAD that is being replaced.
  Result<Head> commit(const CommitRequest& request);

  // Verifies every byte that the checkpoint names. `progress` (may be empty) is told the bytes done so far, and by
  // returning false cancels (kCancelled). Errors are kDataLoss.
  Status verify(const CatalogEntry& entry, const std::function<bool(std::uint64_t bytes)>& progress = {}) const;

  // The newest checkpoint that verifies, or the newest at that version (`step`). What is newer and does not verify is
  // told to `on_damage`. kNotFound: there is none at all; kDataLoss: there were some, and none is good.
  Result<CatalogEntry> newest_good(std::optional<Version> step, const std::function<void(const Damage&)>& on_damage,
                                   const std::function<bool(std::uint64_t bytes)>& progress = {}) const;

  // Removes checkpoints that retention lets go, and orphans of generations below `generation` (never files of a save
  // in flight): first commit record and manifest, durably, then files that no kept manifest names, then empty
  // directories. Ledger segments stay for ever. Refuses, and removes nothing, while a document of a kept checkpoint
  // cannot be read.
  Result<PruneReport> prune(const RetentionOptions& options, Generation generation);

  // What prune() would do, without doing it.
  Result<PruneReport> plan_prune(const RetentionOptions& options, Generation generation) const;

  // A pinned checkpoint survives every prune: a file "pinned" beside its manifest.
  Status pin(const CatalogEntry& entry);
  Status unpin(const CatalogEntry& entry);
  Result<bool> is_pinned(const CatalogEntry& entry) const;

  // The ledger from the beginning to this checkpoint, following the links; kDataLoss names the segment that is missing
  // or damaged.
  Result<std::vector<LedgerSegment>> ledger(const CatalogEntry& entry) const;

  // One more than any generation whose traces are in the directory, committed or not: for the next run.
  Result<Generation> next_generation() const;

 private:
  CatalogPorts ports_;
};

// HEAD as a file in the job's directory: temp, sync, rename, sync of the directory.
std::unique_ptr<HeadStore> make_file_head_store(FileSystem& files, const DocumentFormat& documents, const Seal& seal);

}  // namespace everstep::storage
