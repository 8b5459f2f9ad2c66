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

// What cannot be trusted, and why.
struct Damage {
  std::string checkpoint;  // its directory, or "HEAD"
  Error error;
  std::optional<CheckpointName> name;    // of a checkpoint
  std::optional<std::int64_t> sequence;  // if its commit record is good
};

struct CatalogListing {
  std::optional<Head> newest;         // HEAD, or the commit record that stands in for it
  std::vector<CatalogEntry> entries;  // newest (highest sequence) first
  std::vector<Damage> damaged;        // commit records and manifests that cannot be trusted, and HEAD itself
};

// What a save is about to become; `manifest.files` is complete, name and writer are chosen.
struct CommitRequest {
  Manifest manifest;     // parent, ledger and ledger_writer are filled in by commit()
  WriterTag writer;      // of manifest and ledger segment
  LedgerSegment ledger;  // begins where the parent is, ends at the manifest's position; `before` is filled in
  std::optional<CatalogEntry> parent;        // what this state descends from: what was resumed from or committed last
  std::optional<Head> found = std::nullopt;  // CatalogListing::newest when this run began
};

struct PruneReport {
  std::vector<std::string> removed;  // checkpoints
  std::int64_t files = 0;
  std::uint64_t bytes = 0;
};

// The checkpoints of one job: `FilePorts::files` is rooted at the job's directory. It holds no state of its own, so
// several may look at one directory; at most one process commits, prunes and pins: the one that holds lock().
class Catalog {
 public:
  explicit Catalog(CatalogPorts ports) : ports_(ports) {}

  // For whoever changes something, as long as it may. kUnavailable: another process has it.
  Result<std::unique_ptr<Lock>> lock();

  // All committed checkpoints: HEAD's and those with a commit record. Reads the small documents only. Fails only if the
  // directory itself cannot be read; an empty or missing one has an empty listing. If HEAD is damaged, missing or older
  // than a commit record, `damaged` says so, and the newest commit record stands in for it.
  Result<CatalogListing> list() const;

  // Makes the directory for a checkpoint's files, durably; fine if it is there. A failed one may be tried again.
  Status make_directory(std::uint64_t lineage, const CheckpointName& name);

  // Writes ledger segment and manifest, makes all names durable, moves HEAD, then writes the commit record. All files
  // of the manifest must be written and synced; those of other checkpoints must stand just so in the parent's manifest,
  // and the parent must be the HEAD that is being replaced. A failure leaves HEAD where it was and orphans, or, if HEAD
  // could not be made durable, a complete checkpoint that may or may not survive; try another save, without reuse.
  // A damaged HEAD is replaced. kStaleGeneration, and nothing is written: the newest checkpoint is neither the one that
  // this run found nor of its own (`writer.author`), so another run commits here.
  Result<CatalogEntry> commit(const CommitRequest& request);

  // Verifies every byte that the checkpoint names: size and digest of all files and of its ledger segment (segments
  // before it are ledger()'s). `progress` (may be empty) is told the bytes done so far, and by returning false cancels
  // (kCancelled). kDataLoss: something is missing or differs; kUnavailable: it cannot be read.
  //
  // To verify files on several threads, call verify_ledger and, for each file, verify_block_file or load_block_file.
  Status verify(const CatalogEntry& entry, const std::function<bool(std::uint64_t bytes)>& progress = {}) const;
  Status verify_ledger(const CatalogEntry& entry) const;

  // The newest checkpoint, or the newest at that version (`step`), that `accept` finds good; kDataLoss and kUnavailable
  // mean that it is not, any other error ends the search. What does not verify and is not older is told to `on_damage`.
  // kNotFound: there is none at all; kDataLoss: there were some, and none is good; kInvalidArgument: one that is not
  // older has a newer format, and is not passed over, because it is not damaged.
  using Accept = std::function<Status(const CatalogEntry&)>;
  Result<CatalogEntry> newest_accepted(std::optional<Version> step, const Accept& accept,
                                       const std::function<void(const Damage&)>& on_damage) const;

  // Removes checkpoints that retention lets go, and orphans of generations below `generation` (never files of a save
  // in flight): first commit record and manifest, durably, then files that no kept manifest names, then empty
  // directories. Ledger segments and files that no writer of checkpoints makes stay for ever. Refuses (kDataLoss), and
  // removes nothing, while HEAD or a document of the last `keep_last` checkpoints cannot be trusted. A damaged one that
  // is kept for another reason is left as it is. Nor does it remove anything (kInvalidArgument) beside a document of a
  // newer format. Writes HEAD's commit record if that is missing. `rejected` are those that are known to be damaged.
  Result<PruneReport> prune(const RetentionOptions& options, Generation generation,
                            const std::vector<CheckpointName>& rejected = {});

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

// HEAD as a file in the job's directory: temp, sync, rename, sync of the directory. One that cannot be trusted counts
// as none when it is replaced. For one committing process at a time: the comparison is not atomic between two.
std::unique_ptr<HeadStore> make_file_head_store(FileSystem& files, const DocumentFormat& documents, const Seal& seal);

}  // namespace everstep::storage
