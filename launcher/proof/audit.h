#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "launcher/cli/command.h"
#include "launcher/job/checkpoint_store.h"
#include "storage/json/json.h"

// Whether the files of a job prove that nothing was lost and nothing was done twice.
namespace everstep::launcher {

// What must hold.
enum class Proof {
  kOnce,     // along the ledger every minibatch from 0 to HEAD is consumed exactly once
  kChain,    // commits link without a gap, one committer per generation, and what was fallen back from is recorded
  kRestore,  // every kept checkpoint is whole and can be read block by block
};

std::string_view to_string(Proof proof);  // "once", "chain", "restore"

struct Violation {
  Proof proof = Proof::kOnce;
  std::string object;  // the document, checkpoint or entry
  std::string what;

  bool operator==(const Violation&) const = default;
};

// What one plan did in one generation, without interruption.
struct AuditedStretch {
  Generation generation;
  std::string plan;
  std::int64_t updates = 0;
  Position from;
  Position to;

  bool operator==(const AuditedStretch&) const = default;
};

struct AuditReport {
  std::vector<AuditedStretch> stretches;  // in the order of the data
  std::int64_t minibatches = 0;           // that the ledger names
  std::int64_t kept_minibatches = 0;      // of these: run in an older generation than what surrounds them
  std::int64_t skipped = 0;               // windows
  std::vector<Position> left_out;         // minibatches that were consumed without being trained on
  std::int64_t segments = 0;              // of the ledger
  std::int64_t commits = 0;               // ever
  std::int64_t kept = 0;                  // commits whose checkpoint is still there
  std::vector<std::string> fallbacks;     // one sentence each
  std::vector<std::string> orphans;       // saves that were never committed: no violation
  std::int64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Violation> violations;
};

// The ledger from the beginning to that checkpoint.
void audit_once(const storage::Manifest& newest, const std::vector<storage::LedgerSegment>& ledger,
                AuditReport& report);

// All commit records that can be read, HEAD among them.
void audit_chain(std::vector<storage::Head> records, AuditReport& report);

// Reads everything. Fails only if the directory cannot be read, there is nothing to audit, or somebody asked to stop.
Result<AuditReport> audit_job(CheckpointStore& store, int threads, Streams& streams);

std::string audit_text(const AuditReport& report, const StoreLocation& location, std::size_t columns = 0);
storage::Json audit_json(const AuditReport& report, const StoreLocation& location);

}  // namespace everstep::launcher
